// posenc-budget: the classes of one model, which share what makes them
#include <algorithm>

#include "tokenizers/folder/classes.h"
#include "tokenizers/folder/components.h"
#include "tokenizers/folder/folder_model.h"
#include "tokenizers/folder/model_files.h"

// The classes with a Unigram model.
namespace posenc::text {
namespace {

using components::metaspace;
using components::plain;
using components::replace;
using components::replace_regex;
using Json = nlohmann::json;

constexpr const char* kBlankRuns = R"(\s{2,}|[\n\r\t])";

ModelDefinition& begin_unigram(ClassBuilder& builder, const char* file, uint64_t unk_id) {
  ModelDefinition& model = builder.begin_model(ModelDefinition::Kind::Unigram, {file});
  model.unk_id = unk_id;
  return model;
}

// The index of a piece that Python finds by its text and a score of 0.
std::optional<uint64_t> index_of_zero(const ModelDefinition& model, const std::string& text,
                                      std::size_t from = 0) {
  for (std::size_t index = from; index < model.vocab.size(); ++index) {
    if (model.vocab[index].text == text && model.scores[index] == 0) return index;
  }
  return std::nullopt;
}

// The pre-tokenizer and the decoder; with `on_words` the text is cut at white space first.
void set_metaspace(ClassBuilder& builder, const char* scheme, bool on_words) {
  builder.definition.decoder = metaspace(scheme);
  builder.definition.pre_tokenizer = metaspace(scheme);
  if (on_words) {
    builder.definition.pre_tokenizer =
        components::pre_tokenizers({plain("WhitespaceSplit"), metaspace(scheme)});
  }
}

const char* prefix_scheme(const ClassBuilder& builder) {
  return builder.arguments.flag("add_prefix_space", true) ? "always" : "never";
}

void name_all(ClassBuilder& builder, const char* const (&tokens)[6]) {
  const char* const names[] = {"bos_token", "eos_token", "sep_token",
                               "cls_token", "unk_token", "pad_token"};
  for (std::size_t i = 0; i < 6; ++i) builder.named(names[i], tokens[i]);
}
constexpr const char* kFairseq[6] = {"<s>", "</s>", "</s>", "<s>", "<unk>", "<pad>"};

std::vector<GivenToken> given_extra(const ClassBuilder& builder) {
  return builder.arguments.tokens("additional_special_tokens").value_or(std::vector<GivenToken>());
}

// Whether Python finds the string in the list, which is equal to no AddedToken.
bool has_string(const std::vector<GivenToken>& tokens, const std::string& text) {
  return std::ranges::count(tokens, GivenToken(text)) > 0;
}

// <s> A </s>, and </s> B </s>.
void set_fairseq(ClassBuilder& builder, const std::string& bos, const std::string& eos) {
  const std::vector<std::pair<std::string, uint64_t>> ids = {
      {bos, builder.required_id(builder.named_text("bos_token"))},
      {eos, builder.required_id(builder.named_text("eos_token"))}};
  builder.set_template_with_ids({bos, "$A", eos}, {bos, "$A", eos, eos, "$B", eos}, ids);
}

void construct_xlm_roberta(ClassBuilder& builder) {
  begin_unigram(builder, "sentencepiece.bpe.model", 3);
  if (builder.charsmap())
    builder.definition.normalizer = components::precompiled(*builder.charsmap());
  set_metaspace(builder, prefix_scheme(builder), true);
  name_all(builder, kFairseq);
  builder.named("mask_token", "<mask>");
  builder.finish();
  set_fairseq(builder, builder.named_text("bos_token"), builder.named_text("eos_token"));
}

void construct_camembert(ClassBuilder& builder) {
  ModelDefinition& model = begin_unigram(builder, "sentencepiece.bpe.model", 0);
  name_all(builder, kFairseq);
  builder.flagged("mask_token", "<mask>", true, std::nullopt, true);
  const std::string unk = ClassBuilder::text_of(builder.named("unk_token", "<unk>"));
  const auto found = std::ranges::find(model.vocab, std::string_view(unk), &Piece::text);
  if (found != model.vocab.end()) model.unk_id = static_cast<uint64_t>(found - model.vocab.begin());
  if (builder.charsmap())
    builder.definition.normalizer = components::precompiled(*builder.charsmap());
  set_metaspace(builder, prefix_scheme(builder), true);
  builder.set_extra(builder.arguments.tokens("additional_special_tokens")
                        .value_or(std::vector{GivenToken("<s>NOTUSED"), GivenToken("</s>NOTUSED"),
                                              GivenToken("<unk>NOTUSED")}));
  builder.finish();
  const std::string bos = builder.named_text("bos_token"), eos = builder.named_text("eos_token");
  builder.set_template(pieces_of(bos + " $A " + eos),
                       pieces_of(bos + " $A " + eos + " " + eos + " $B " + eos), {bos, eos});
}

void make_t5(ClassBuilder& builder, uint64_t unk_id) {
  begin_unigram(builder, "spiece.model", unk_id);
  const int64_t count = builder.arguments.number("extra_ids", 100);
  std::vector<GivenToken> extra = given_extra(builder);
  const auto known = std::ranges::count_if(extra, [](const GivenToken& token) {
    return token.content.find("<extra_id_") != std::string::npos;
  });
  if (known > 0 && count > 0 && count != known) {
    refuse("additional_special_tokens", "have as many <extra_id_> as extra_ids says",
           std::to_string(known));
  }
  for (int64_t i = 0; known == 0 && i < count; ++i)
    extra.emplace_back("<extra_id_" + std::to_string(i) + ">");
  if (builder.charsmap())
    builder.definition.normalizer = components::precompiled(*builder.charsmap());
  set_metaspace(builder, "always", true);
  builder.named("eos_token", "</s>");
  builder.named("unk_token", "<unk>");
  builder.named("pad_token", "<pad>");
  builder.set_extra(extra);
  builder.finish();
}

void set_t5_template(ClassBuilder& builder) {
  builder.set_template_with_ids({"$A", "</s>"}, {"$A", "</s>", "$B", "</s>"},
                                {{"</s>", builder.required_id(builder.named_text("eos_token"))}});
}

void construct_t5(ClassBuilder& builder) {
  make_t5(builder, 2);
  set_t5_template(builder);
}

void construct_lasr(ClassBuilder& builder) {
  builder.settings.decodes_runs_once = true;
  make_t5(builder, 3);
  set_t5_template(builder);
}

void construct_video_prism(ClassBuilder& builder) { make_t5(builder, 2); }

void construct_pegasus(ClassBuilder& builder) {
  ModelDefinition& model = begin_unigram(builder, "spiece.model", 0);
  const std::string unk = ClassBuilder::text_of(builder.named("unk_token", "<unk>"));
  model.unk_id = index_of_zero(model, unk, 1);
  if (!model.unk_id)
    refuse("the vocabulary", "have the unknown token with a score of 0, but not first", unk);
  const auto blanks = replace_regex(" {2,}", " ");
  builder.definition.normalizer =
      components::normalizers({builder.charsmap() ? components::precompiled(*builder.charsmap())
                                                  : replace_regex(R"(\n)", " "),
                               blanks});
  set_metaspace(builder, "always", false);
  builder.named("pad_token", "<pad>");
  const std::string eos = ClassBuilder::text_of(builder.named("eos_token", "</s>"));
  builder.named("mask_token", "<mask_2>");
  const std::string sentence = builder.arguments.text("mask_token_sent", "<mask_1>");
  std::vector<GivenToken> extra;
  if (!has_string(given_extra(builder), sentence)) extra.emplace_back(sentence);
  const int64_t offset = builder.arguments.number("offset", 103);
  for (int64_t i = 2; i < offset; ++i) extra.emplace_back("<unk_" + std::to_string(i) + ">");
  builder.set_extra(extra);
  builder.finish();
  builder.set_template(pieces_of("$A " + eos), pieces_of("$A $B " + eos), {eos});
}

// cls A sep, and B sep of type 1.
void set_bert_template(ClassBuilder& builder, const std::string& cls, const std::string& sep) {
  const std::string single = cls + ":0 $A:0 " + sep + ":0";
  builder.set_template(pieces_of(single), pieces_of(single + " $B:1 " + sep + ":1"), {cls, sep});
}

void construct_deberta_v2(ClassBuilder& builder) {
  builder.settings.model_input_names = {"input_ids", "attention_mask", "token_type_ids"};
  ModelDefinition& model = begin_unigram(builder, "spm.model", 0);
  model.unk_id = static_cast<uint64_t>(builder.arguments.number("unk_id", 1));
  name_all(builder, {"[CLS]", "[SEP]", "[SEP]", "[CLS]", "[UNK]", "[PAD]"});
  builder.named("mask_token", "[MASK]");
  const std::string unk = ClassBuilder::text_of(builder.named("unk_token", "[UNK]"));
  if (const auto index = index_of_zero(model, unk)) model.unk_id = index;
  std::vector<Json> normalizers;
  if (builder.arguments.flag("do_lower_case", false)) normalizers.push_back(plain("Lowercase"));
  normalizers.insert(normalizers.end(), {replace_regex(kBlankRuns, " "), plain("NFC"),
                                         components::strip(false, true)});
  builder.definition.normalizer = components::normalizers(normalizers);
  const char* const scheme = builder.arguments.flag("add_prefix_space", true) ? "always" : "first";
  set_metaspace(builder, scheme, false);
  std::vector<Json> parts;
  if (builder.arguments.flag("split_by_punct", false)) {
    parts.push_back({{"type", "Punctuation"}, {"behavior", "Isolated"}});
  }
  parts.push_back(metaspace(scheme));
  builder.definition.pre_tokenizer = components::pre_tokenizers(parts);
  builder.finish();
  const std::string cls = builder.text_or_none("cls_token"),
                    sep = builder.text_or_none("sep_token");
  const std::string single = cls + ":0 $A:0 " + sep + ":0";
  builder.set_template_with_ids(
      pieces_of(single), pieces_of(single + " $B:1 " + sep + ":1"),
      {{cls, builder.named_id("cls_token", 0)}, {sep, builder.named_id("sep_token", 0)}});
}

// The normalisers of XLNet, ALBERT and RemBERT.
void set_old_normalizers(ClassBuilder& builder, bool join_blanks, bool strip_accents,
                         bool lowercase) {
  std::vector<Json> parts = {replace("``", "\""), replace("''", "\"")};
  if (join_blanks) parts.push_back(replace_regex(" {2,}", " "));
  if (strip_accents) parts.insert(parts.end(), {plain("NFKD"), plain("StripAccents")});
  if (lowercase) parts.push_back(plain("Lowercase"));
  if (builder.charsmap()) parts.push_back(components::precompiled(*builder.charsmap()));
  builder.definition.normalizer = components::normalizers(parts);
}

void construct_xlnet(ClassBuilder& builder) {
  builder.settings.pads_left = true;
  ModelDefinition& model = begin_unigram(builder, "spiece.model", 0);
  model.unk_id = static_cast<uint64_t>(builder.arguments.number("unk_id", 0));
  set_old_normalizers(builder, false, true, builder.arguments.flag("do_lower_case", false));
  set_metaspace(builder, "always", true);
  name_all(builder, {"<s>", "</s>", "<sep>", "<cls>", "<unk>", "<pad>"});
  builder.flagged("mask_token", "<mask>", true);
  builder.set_extra(builder.arguments.tokens("additional_special_tokens")
                        .value_or(std::vector{GivenToken("<eop>"), GivenToken("<eod>")}));
  builder.finish();
  const std::string cls = builder.named_text("cls_token"), sep = builder.named_text("sep_token");
  const std::string first = "$A:0 " + sep + ":0 ";
  builder.set_template(pieces_of(first + cls + ":2"),
                       pieces_of(first + "$B:1 " + sep + ":1 " + cls + ":2"), {sep, cls});
}

void name_albert(ClassBuilder& builder) {
  name_all(builder, {"[CLS]", "[SEP]", "[SEP]", "[CLS]", "<unk>", "<pad>"});
  builder.named("mask_token", "[MASK]");
}

void construct_albert(ClassBuilder& builder) {
  begin_unigram(builder, "spiece.model", 1);
  set_old_normalizers(builder, false, !builder.arguments.flag("keep_accents", false),
                      builder.arguments.flag("do_lower_case", true));
  set_metaspace(builder, prefix_scheme(builder), true);
  name_albert(builder);
  const Json made_below = plain("TemplateProcessing");
  builder.definition.post_processor =
      made_below;  // as transformers sets it before it looks at that of the file
  builder.finish();
  if (builder.definition.post_processor != made_below) return;
  builder.set_template_with_ids(pieces_of("[CLS]:0 $A:0 [SEP]:0"),
                                pieces_of("[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"),
                                {{"[CLS]", builder.required_id(builder.named_text("cls_token"))},
                                 {"[SEP]", builder.required_id(builder.named_text("sep_token"))}});
}

// It has no constructor of its own, so that tokenizer.json or the SentencePiece model stays.
void construct_fnet(ClassBuilder& builder) {
  builder.settings.model_input_names = {"input_ids", "token_type_ids"};
  take_file_or_sentencepiece(builder, {"spiece.model"}, ModelDefinition::Kind::Unigram);
  name_albert(builder);
  builder.finish();
}

void construct_rem_bert(ClassBuilder& builder) {
  begin_unigram(builder, "sentencepiece.model", 2);
  set_old_normalizers(builder, true, !builder.arguments.flag("keep_accents", true),
                      builder.arguments.flag("do_lower_case", false));
  set_metaspace(builder, prefix_scheme(builder), false);
  name_albert(builder);
  builder.finish();
  set_bert_template(builder, builder.text_or_none("cls_token"), builder.text_or_none("sep_token"));
  builder.post_init();
}

void construct_big_bird(ClassBuilder& builder) {
  ModelDefinition& model = begin_unigram(builder, "spiece.model", 100);
  const std::string unk = ClassBuilder::text_of(builder.flagged("unk_token", "<unk>", false));
  if (const auto index = index_of_zero(model, unk)) model.unk_id = index;
  builder.definition.normalizer =
      components::normalizers({components::strip(false, false), replace_regex(" {2,}", "\u2581")});
  set_metaspace(builder, prefix_scheme(builder), false);
  builder.flagged("bos_token", "<s>", false);
  builder.flagged("eos_token", "</s>", false);
  builder.flagged("pad_token", "<pad>", false);
  builder.flagged("cls_token", "[CLS]", false);
  builder.flagged("sep_token", "[SEP]", false);
  builder.flagged("mask_token", "[MASK]", true);
  builder.finish();
  set_bert_template(builder, builder.named_text("cls_token"), builder.named_text("sep_token"));
}

void construct_xglm(ClassBuilder& builder) {
  begin_unigram(builder, "sentencepiece.bpe.model", 3);
  std::vector<Json> normalizers;
  if (builder.charsmap()) normalizers.push_back(components::precompiled(*builder.charsmap()));
  normalizers.push_back(replace_regex(" {2,}", " "));
  builder.definition.normalizer = components::normalizers(normalizers);
  set_metaspace(builder, prefix_scheme(builder), false);
  name_all(builder, kFairseq);
  std::vector<GivenToken> extra = given_extra(builder);
  for (int i = 0; i < 7; ++i) {
    const std::string word = "<madeupword" + std::to_string(i) + ">";
    if (!has_string(extra, word)) extra.emplace_back(word);
  }
  builder.set_extra(extra);
  builder.finish();
  const std::string bos = builder.named_text("bos_token"), eos = builder.named_text("eos_token");
  builder.set_template(pieces_of(eos + " $A"), pieces_of(eos + " $A " + eos + " " + eos + " $B"),
                       {bos, eos});
}

void construct_barthez(ClassBuilder& builder) {
  begin_unigram(builder, "sentencepiece.bpe.model", 3);
  builder.definition.normalizer = components::normalizers(
      {replace_regex(kBlankRuns, " "), plain("NFC"), components::strip(false, true)});
  set_metaspace(builder, prefix_scheme(builder), false);
  name_all(builder, kFairseq);
  builder.flagged("mask_token", "<mask>", true);
  builder.finish();
}

}  // namespace

Constructor unigram_constructor(std::string_view name) {
  if (name == "XLMRobertaTokenizer") return construct_xlm_roberta;
  if (name == "CamembertTokenizer") return construct_camembert;
  if (name == "T5Tokenizer") return construct_t5;
  if (name == "VideoPrismTokenizer") return construct_video_prism;
  if (name == "LasrTokenizer") return construct_lasr;
  if (name == "PegasusTokenizer") return construct_pegasus;
  if (name == "DebertaV2Tokenizer") return construct_deberta_v2;
  if (name == "XLNetTokenizer") return construct_xlnet;
  if (name == "AlbertTokenizer") return construct_albert;
  if (name == "FNetTokenizer") return construct_fnet;
  if (name == "RemBertTokenizer") return construct_rem_bert;
  if (name == "BigBirdTokenizer") return construct_big_bird;
  if (name == "XGLMTokenizer") return construct_xglm;
  if (name == "BarthezTokenizer") return construct_barthez;
  return nullptr;
}

}  // namespace posenc::text
