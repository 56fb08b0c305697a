#include <algorithm>

#include "tokenizers/folder/classes.h"
#include "tokenizers/folder/language_codes.h"

// The classes of translation models, which add the language of the source to a text.
namespace posenc::text {
namespace {

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

}  // namespace

// The codes of languages before the folder's own tokens.
void name_mbart_languages(ClassBuilder& builder) {
  std::vector<GivenToken> extra(mbart_codes().begin(), mbart_codes().end());
  for (GivenToken& token : builder.given_extra()) {
    if (std::ranges::count(mbart_codes(), token.content) == 0) extra.push_back(std::move(token));
  }
  builder.set_extra(extra);
}

void set_mbart_languages(ClassBuilder& builder) {
  const std::string source = builder.arguments.text("src_lang", "en_XX");
  set_languages(builder, LanguagePosition::AfterEnd, token_of(builder, source),
                token_of(builder, builder.arguments.text("tgt_lang", source)));
}

// A SentencePiece vocabulary begins with <unk> <s> </s>, and has no languages.
void insert_mbart50_languages(ClassBuilder& builder) {
  std::vector<GivenToken> extra = builder.given_extra();
  for (const std::string& code : mbart50_codes()) extra.emplace_back(code);
  builder.set_extra(extra);
  ModelDefinition& model = builder.definition.model;
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
  for (const char* name : {"cls_token", "pad_token", "eos_token", "unk_token"})
    add(builder.passed_text(name));
  for (std::size_t index = 3; index < model.vocab.size(); ++index) {
    vocab.push_back({model.vocab[index].text, static_cast<uint32_t>(vocab.size())});
    scores.push_back(model.scores[index]);
  }
  for (const std::string& code : mbart50_codes()) add(code);
  add(builder.passed_text("mask_token"));
  model.vocab = std::move(vocab);
  model.scores = std::move(scores);
}

void set_mbart50_languages(ClassBuilder& builder) {
  builder.append_extra(mbart50_codes());
  const std::string source = builder.arguments.text("src_lang", "en_XX");
  if (std::ranges::count(mbart50_codes(), source) == 0)
    refuse("src_lang", "be a language of mBART-50", source);
  set_languages(builder, LanguagePosition::First, token_of(builder, source),
                token_of(builder, builder.arguments.text("tgt_lang", source)));
}

void set_nllb_languages(ClassBuilder& builder) {
  const bool is_old = builder.arguments.flag("legacy_behaviour", false);
  const std::string source = builder.arguments.text("src_lang", "eng_Latn");
  set_languages(builder, is_old ? LanguagePosition::AfterEnd : LanguagePosition::First, source,
                builder.arguments.text("tgt_lang", source));
}

void set_seamless_languages(ClassBuilder& builder) {
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

}  // namespace posenc::text
