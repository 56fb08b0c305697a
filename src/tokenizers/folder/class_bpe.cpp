#include <algorithm>
#include <string_view>

#include "tokenizers/folder/classes.h"
#include "tokenizers/folder/components.h"

// The classes whose BPE works on characters.
namespace posenc::text {
namespace {

using components::replace;
using Json = nlohmann::json;

constexpr VocabularyFiles kVocabAndMerges = {"vocab.json", "merges.txt"};

// What SentencePiece's BPE with bytes is in Llama and Gemma.
ModelDefinition& begin_byte_fallback(ClassBuilder& builder, const VocabularyFiles& files) {
  ModelDefinition& model = builder.begin_model(ModelDefinition::Kind::Bpe, files);
  model.fuse_unk = true;
  model.byte_fallback = true;
  return model;
}

std::vector<Json> byte_fallback_decoders(bool strip_first) {
  std::vector<Json> parts = {replace("\u2581", " "), components::plain("ByteFallback"),
                             components::plain("Fuse")};
  if (strip_first)
    parts.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1U}, {"stop", 0U}});
  return parts;
}

void construct_llama(ClassBuilder& builder) {
  builder.settings.pads_left = true;
  begin_byte_fallback(builder, {"tokenizer.model"});
  const bool prefix = builder.arguments.optional_flag("add_prefix_space").value_or(true);
  const bool legacy = builder.arguments.optional_flag("legacy").value_or(false);
  builder.definition.pre_tokenizer = components::metaspace(!prefix  ? "never"
                                                           : legacy ? "always"
                                                                    : "first",
                                                           false);
  builder.definition.decoder = components::decoders(byte_fallback_decoders(prefix));
  builder.named("unk_token", "<unk>");
  builder.named("bos_token", "<s>");
  builder.named("eos_token", "</s>");
  builder.finish();
}

void construct_code_llama(ClassBuilder& builder) {
  builder.settings.pads_left = true;
  begin_byte_fallback(builder, {"tokenizer.model"}).unk_token =
      ClassBuilder::text_of(builder.named("unk_token", "<unk>"));
  const bool prefix = builder.arguments.optional_flag("add_prefix_space").value_or(true);
  builder.definition.pre_tokenizer = components::metaspace(prefix ? "first" : "never", false);
  builder.definition.decoder = components::decoders(byte_fallback_decoders(true));
  builder.named("bos_token", "<s>");
  builder.named("eos_token", "</s>");
  std::vector<GivenToken> extra =
      builder.arguments.tokens("additional_special_tokens").value_or(std::vector<GivenToken>());
  const std::pair<const char*, const char*> own[] = {{"prefix_token", "\u2581<PRE>"},
                                                     {"middle_token", "\u2581<MID>"},
                                                     {"suffix_token", "\u2581<SUF>"},
                                                     {"eot_token", "\u2581<EOT>"},
                                                     {"fill_token", "<FILL_ME>"}};
  for (const auto& [name, otherwise] : own) {
    const ClassBuilder::Named token = builder.named(name, otherwise);
    if (!token) continue;
    extra.push_back(*token);
    if (std::string_view(name) == "fill_token") builder.settings.infill_token = token->content;
  }
  builder.set_extra(extra);
  builder.arguments.set_default("add_bos_token", true);
  builder.finish();
}

void begin_gemma(ClassBuilder& builder) {
  builder.settings.pads_left = true;
  begin_byte_fallback(builder, {}).unk_token =
      ClassBuilder::text_of(builder.named("unk_token", "<unk>"));
  builder.definition.normalizer = replace(" ", "\u2581");
  builder.definition.pre_tokenizer =
      components::split({{"String", " "}}, "MergedWithPrevious", false);
  builder.definition.decoder = components::decoders(byte_fallback_decoders(false));
  builder.named("bos_token", "<bos>");
  builder.named("eos_token", "<eos>");
  builder.named("pad_token", "<pad>");
  builder.named("mask_token", "<mask>");
}

void construct_gemma(ClassBuilder& builder) {
  begin_gemma(builder);
  builder.finish();
}

void construct_siglip2(ClassBuilder& builder) {
  begin_gemma(builder);
  builder.definition.normalizer =
      components::normalizers({components::plain("Lowercase"), builder.definition.normalizer});
  builder.finish();
}

Json bert_normalizer(bool lowercase, Json strip_accents) {
  return {{"type", "BertNormalizer"},
          {"clean_text", true},
          {"handle_chinese_chars", true},
          {"strip_accents", std::move(strip_accents)},
          {"lowercase", lowercase}};
}

// BPE on the words of BERT's pre-tokenizer.
void begin_word_end(ClassBuilder& builder, Json normalizer) {
  ModelDefinition& model = builder.begin_model(ModelDefinition::Kind::Bpe, kVocabAndMerges);
  model.unk_token = ClassBuilder::text_of(builder.named("unk_token", "<unk>"));
  model.end_of_word_suffix = "</w>";
  builder.definition.normalizer = std::move(normalizer);
  builder.definition.pre_tokenizer = components::plain("BertPreTokenizer");
  builder.definition.decoder = {{"type", "BPEDecoder"}, {"suffix", "</w>"}};
}

void construct_openai(ClassBuilder& builder) {
  begin_word_end(builder, bert_normalizer(true, Json()));
  builder.finish();
}

void construct_herbert(ClassBuilder& builder) {
  begin_word_end(builder, bert_normalizer(false, false));
  builder.named("cls_token", "<s>");
  builder.named("pad_token", "<pad>");
  builder.named("mask_token", "<mask>");
  builder.named("sep_token", "</s>");
  builder.finish();
  builder.definition.post_processor = {{"type", "BertProcessing"},
                                       {"sep", Json::array({builder.named_text("sep_token"), 2U})},
                                       {"cls", Json::array({builder.named_text("cls_token"), 0U})}};
}

void construct_reformer(ClassBuilder& builder) {
  ModelDefinition& model = builder.begin_model(ModelDefinition::Kind::Bpe, {"spiece.model"});
  model.unk_token = ClassBuilder::text_of(builder.named("unk_token", "<unk>"));
  model.fuse_unk = true;
  if (builder.charsmap()) {
    builder.definition.normalizer = components::normalizers(
        {components::precompiled(*builder.charsmap()), components::replace_regex(" {2,}", " ")});
  }
  builder.definition.pre_tokenizer = components::metaspace("always");
  builder.definition.decoder = components::metaspace("always");
  builder.named("eos_token", "</s>");
  builder.finish();
  builder.post_init();
}

void construct_tipsv2(ClassBuilder& builder) {
  begin_byte_fallback(builder, {"tokenizer.model"});
  std::vector<Json> normalizers;
  if (builder.arguments.flag("do_lower_case", true))
    normalizers.push_back(components::plain("Lowercase"));
  if (builder.charsmap()) normalizers.push_back(components::precompiled(*builder.charsmap()));
  builder.definition.normalizer = components::normalizers(normalizers);
  builder.definition.pre_tokenizer = components::pre_tokenizers(
      {components::plain("WhitespaceSplit"), components::metaspace("always")});
  builder.definition.decoder =
      components::decoders({components::metaspace("always"), components::plain("ByteFallback"),
                            components::plain("Fuse")});
  builder.named("unk_token", "<unk>");
  builder.named("pad_token", "<pad>");
  builder.named("bos_token", nullptr);
  builder.named("eos_token", nullptr);
  builder.arguments.set_default("model_max_length", 64);
  builder.finish();
}

// The vocabulary of proteins is part of the class.
void construct_esmc(ClassBuilder& builder) {
  constexpr std::string_view kTokens[] = {
      "<cls>", "<pad>", "<eos>", "<unk>", "L", "A", "G", "V", "S", "E", "R",
      "T",     "I",     "D",     "P",     "K", "Q", "N", "F", "Y", "M", "H",
      "W",     "C",     "X",     "B",     "U", "Z", "O", ".", "-", "|", "<mask>"};
  ModelDefinition& model = builder.definition.model;
  model.kind = ModelDefinition::Kind::Bpe;
  for (const std::string_view token : kTokens) {
    model.vocab.push_back(
        {builder.definition.strings->keep(token), static_cast<uint32_t>(model.vocab.size())});
  }
  model.unk_token = ClassBuilder::text_of(builder.named("unk_token", "<unk>"));
  const ClassBuilder::Named cls = builder.named("cls_token", "<cls>");
  builder.named("bos_token", builder.arguments.named("bos_token", std::nullopt)
                                 .value_or(cls.value_or(GivenToken("<cls>"))));
  builder.named("pad_token", "<pad>");
  builder.named("mask_token", "<mask>");
  builder.named("eos_token", "<eos>");
  builder.named("chain_break_token", "|");
  builder.arguments.set_default("extra_special_tokens", Settings());  // so the older name is unused
  builder.finish();
  std::vector<std::pair<std::string, uint64_t>> specials;
  for (const char* name : {"cls_token", "eos_token"}) {
    const std::string token = builder.named_text(name);
    const auto* const found = std::ranges::find(kTokens, token);
    if (found == std::end(kTokens)) refuse(name, "be a token of ESMC", shown(token));
    specials.emplace_back(token, static_cast<uint64_t>(found - kTokens));
  }
  builder.set_template_with_ids({specials[0].first, "$A", specials[1].first}, {"$A:0", "$B:1"},
                                specials);
}

}  // namespace

Constructor bpe_constructor(std::string_view name) {
  if (name == "LlamaTokenizer") return construct_llama;
  if (name == "CodeLlamaTokenizer") return construct_code_llama;
  if (name == "GemmaTokenizer") return construct_gemma;
  if (name == "Siglip2Tokenizer") return construct_siglip2;
  if (name == "OpenAIGPTTokenizer") return construct_openai;
  if (name == "HerbertTokenizer") return construct_herbert;
  if (name == "ReformerTokenizer") return construct_reformer;
  if (name == "Tipsv2Tokenizer") return construct_tipsv2;
  if (name == "EsmcTokenizer") return construct_esmc;
  return nullptr;
}

}  // namespace posenc::text
