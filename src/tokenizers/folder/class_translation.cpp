#include <algorithm>

#include "tokenizers/folder/classes.h"
#include "tokenizers/folder/components.h"
#include "tokenizers/folder/language_codes.h"

// The classes of translation models, which add the language of the source to a text.
namespace posenc::text {
namespace {

using components::metaspace;
using components::replace_regex;
using Json = nlohmann::json;

constexpr const char* kFile = "sentencepiece.bpe.model";

void name_fairseq(ClassBuilder& builder) {
  builder.named("bos_token", "<s>");
  builder.named("eos_token", "</s>");
  builder.named("sep_token", "</s>");
  builder.named("cls_token", "<s>");
  builder.named("unk_token", "<unk>");
  builder.named("pad_token", "<pad>");
}

// The token that stands for a language: the unknown one if it has none.
std::string token_of(const ClassBuilder& builder, const std::string& language) {
  return builder.has_id(language) ? language : builder.named_text("unk_token");
}

// Where the tokens of a language are.
enum class LanguagePosition { AfterEnd, First };

// The language of a text, and for texts of the target language that of these: the same unless the
// folder has another.
void set_languages(ClassBuilder& builder, LanguagePosition position, const std::string& source,
                   const std::string& target) {
  const std::string eos = builder.named_text("eos_token");
  const auto set = [&](const std::string& language, auto&& set_template) {
    if (position == LanguagePosition::AfterEnd) {
      set_template(Template{"$A", eos, language}, Template{"$A", "$B", eos, language});
    } else {
      set_template(Template{language, "$A", eos}, Template{language, "$A", "$B", eos});
    }
  };
  set(source, [&](const Template& single, const Template& pair) {
    builder.set_template(single, pair, {eos, source});
  });
  set(target, [&](const Template& single, const Template& pair) {
    builder.set_target_template(single, pair, {eos, target});
  });
}

void add_codes(std::vector<GivenToken>& extra, const std::vector<std::string>& codes) {
  for (const std::string& code : codes) extra.emplace_back(code);
}

void construct_mbart(ClassBuilder& builder) {
  builder.begin_model(ModelDefinition::Kind::Unigram, {kFile}).unk_id = 3;
  builder.definition.pre_tokenizer =
      components::pre_tokenizers({components::plain("WhitespaceSplit"), metaspace("always")});
  builder.definition.decoder = metaspace("always");
  name_fairseq(builder);
  builder.flagged("mask_token", "<mask>", true);
  std::vector<GivenToken> extra;
  add_codes(extra, mbart_codes());
  for (GivenToken& token :
       builder.arguments.tokens("additional_special_tokens").value_or(std::vector<GivenToken>())) {
    if (std::ranges::count(mbart_codes(), token.content) == 0) extra.push_back(std::move(token));
  }
  builder.set_extra(extra);
  builder.finish();
  const std::string source = builder.arguments.text("src_lang", "en_XX");
  set_languages(builder, LanguagePosition::AfterEnd, token_of(builder, source),
                token_of(builder, builder.arguments.text("tgt_lang", source)));
}

// A SentencePiece vocabulary begins with <unk> <s> </s>, and has no languages.
void insert_mbart50_codes(ClassBuilder& builder, ModelDefinition& model) {
  const auto is_code = [](const Piece& piece) {
    return std::ranges::count(mbart50_codes(), piece.text) > 0;
  };
  if (std::ranges::any_of(model.vocab, is_code)) return;
  std::vector<Piece> vocab;
  std::vector<double> scores;
  const auto add = [&](const std::string& text) {
    vocab.push_back({builder.definition.strings->keep(text), static_cast<uint32_t>(vocab.size())});
    scores.push_back(0);
  };
  const auto text = [&](const char* name, const char* otherwise) {
    return ClassBuilder::text_of(builder.named(name, otherwise));
  };
  add(text("cls_token", "<s>"));
  add(text("pad_token", "<pad>"));
  add(text("eos_token", "</s>"));
  add(text("unk_token", "<unk>"));
  for (std::size_t index = 3; index < model.vocab.size(); ++index) {
    vocab.push_back({model.vocab[index].text, static_cast<uint32_t>(vocab.size())});
    scores.push_back(model.scores[index]);
  }
  for (const std::string& code : mbart50_codes()) add(code);
  add(ClassBuilder::text_of(builder.flagged("mask_token", "<mask>", true)));
  model.vocab = std::move(vocab);
  model.scores = std::move(scores);
}

void construct_mbart50(ClassBuilder& builder) {
  ModelDefinition& model = builder.begin_model(ModelDefinition::Kind::Unigram, {kFile});
  model.unk_id = 3;
  insert_mbart50_codes(builder, model);
  std::vector<Json> normalizers;
  if (builder.charsmap()) normalizers.push_back(components::precompiled(*builder.charsmap()));
  normalizers.push_back(replace_regex(" {2,}", " "));
  builder.definition.normalizer = components::normalizers(normalizers);
  builder.definition.pre_tokenizer = metaspace("always");
  builder.definition.decoder = metaspace("always");
  const std::optional<GivenToken> bos = builder.arguments.named("bos_token", std::nullopt);
  name_fairseq(builder);
  builder.named("bos_token", bos);
  builder.flagged("mask_token", "<mask>", true);
  std::vector<GivenToken> extra =
      builder.arguments.tokens("additional_special_tokens").value_or(std::vector<GivenToken>());
  add_codes(extra, mbart50_codes());
  builder.set_extra(extra);
  builder.finish();
  builder.append_extra(mbart50_codes());
  const std::string source = builder.arguments.text("src_lang", "en_XX");
  if (std::ranges::count(mbart50_codes(), source) == 0)
    refuse("src_lang", "be a language of mBART-50", source);
  set_languages(builder, LanguagePosition::First, token_of(builder, source),
                token_of(builder, builder.arguments.text("tgt_lang", source)));
}

void construct_nllb(ClassBuilder& builder) {
  ModelDefinition& model = builder.begin_model(ModelDefinition::Kind::Bpe, {kFile});
  name_fairseq(builder);
  model.unk_token = ClassBuilder::text_of(builder.named("unk_token", "<unk>"));
  model.fuse_unk = true;
  if (builder.charsmap()) {
    builder.definition.normalizer = components::normalizers(
        {components::precompiled(*builder.charsmap()), replace_regex(" {2,}", " ")});
  }
  builder.definition.pre_tokenizer = metaspace("always");
  builder.definition.decoder = metaspace("always");
  builder.flagged("mask_token", "<mask>", true, true, true);
  std::vector<GivenToken> codes;
  add_codes(codes, nllb_codes());
  builder.set_extra(builder.arguments.tokens("additional_special_tokens").value_or(codes));
  const bool is_old = builder.arguments.flag("legacy_behaviour", false);
  builder.finish();
  const std::string source = builder.arguments.text("src_lang", "eng_Latn");
  set_languages(builder, is_old ? LanguagePosition::AfterEnd : LanguagePosition::First, source,
                builder.arguments.text("tgt_lang", source));
}

void construct_seamless(ClassBuilder& builder) {
  ModelDefinition& model = builder.begin_model(ModelDefinition::Kind::Bpe, {kFile});
  name_fairseq(builder);
  model.unk_token = ClassBuilder::text_of(builder.named("unk_token", "<unk>"));
  model.fuse_unk = true;
  builder.definition.normalizer =
      components::normalizers({replace_regex(R"([\n\r\t])", " "), components::plain("NFKC"),
                               components::strip(false, true), replace_regex(" +\u2581", "\u2581"),
                               replace_regex("^\u2581+$", ""), replace_regex(" {2,}", "\u2581")});
  builder.definition.pre_tokenizer = metaspace("first");
  builder.definition.decoder = metaspace("first");
  builder.finish();
  const auto language = [&](const char* name, const char* otherwise) {
    const std::string code = builder.arguments.text(name, otherwise);
    return token_of(builder, code.find("__") == std::string::npos ? "__" + code + "__" : code);
  };
  const std::string eos = builder.named_text("eos_token");
  const std::string source = language("src_lang", "eng"), target = language("tgt_lang", "fra");
  builder.set_template({source, "$A", eos}, {source, "$A", "$B", eos}, {source, eos});
  builder.set_target_template({eos, target, "$A", eos}, {eos, target, "$A", "$B", eos},
                              {eos, target});
}

}  // namespace

Constructor translation_constructor(std::string_view name) {
  if (name == "MBartTokenizer") return construct_mbart;
  if (name == "MBart50Tokenizer") return construct_mbart50;
  if (name == "NllbTokenizer") return construct_nllb;
  if (name == "SeamlessM4TTokenizer") return construct_seamless;
  return nullptr;
}

}  // namespace posenc::text
