#include <algorithm>

#include "tokenizers/folder/classes.h"
#include "tokenizers/folder/components.h"
#include "tokenizers/folder/language_codes.h"
#include "tokenizers/python/text.h"

// The classes whose BPE works on bytes.
namespace posenc::text {
namespace {

using components::byte_level;
using Json = nlohmann::json;

constexpr VocabularyFiles kByteLevelFiles = {"vocab.json", "merges.txt"};

// The model and what GPT-2 has around it.
ModelDefinition& begin_byte_level(ClassBuilder& builder, bool add_prefix_space,
                                  bool trim_offsets = true,
                                  const VocabularyFiles& files = kByteLevelFiles) {
  ModelDefinition& model = builder.begin_model(ModelDefinition::Kind::Bpe, files);
  builder.definition.pre_tokenizer = byte_level(add_prefix_space, trim_offsets);
  builder.definition.decoder = byte_level(true);
  return model;
}

void name_all(ClassBuilder& builder, const char* bos, const char* eos, const char* unk,
              const char* pad) {
  builder.named("bos_token", bos);
  builder.named("eos_token", eos);
  builder.named("unk_token", unk);
  builder.named("pad_token", pad);
}

void name_all(ClassBuilder& builder, const char* bos, const char* eos, const char* unk,
              const char* pad, const char* sep, const char* cls) {
  name_all(builder, bos, eos, unk, pad);
  builder.named("sep_token", sep);
  builder.named("cls_token", cls);
}

void construct_roberta(ClassBuilder& builder) {
  const bool prefix = builder.arguments.flag("add_prefix_space", false);
  begin_byte_level(builder, prefix);
  name_all(builder, "<s>", "</s>", "<unk>", "<pad>", "</s>", "<s>");
  builder.named("mask_token", "<mask>");
  builder.finish();
  const std::string sep = builder.named_text("sep_token"), cls = builder.named_text("cls_token");
  builder.set_roberta({sep, builder.required_id(sep)}, {cls, builder.required_id(cls)},
                      builder.arguments.flag("trim_offsets", true), prefix);
}

void construct_deberta(ClassBuilder& builder) {
  builder.settings.model_input_names = {"input_ids", "attention_mask", "token_type_ids"};
  begin_byte_level(builder, builder.arguments.flag("add_prefix_space", false));
  name_all(builder, "[CLS]", "[SEP]", "[UNK]", "[PAD]", "[SEP]", "[CLS]");
  builder.named("mask_token", "[MASK]");
  builder.finish();
  const std::string cls = builder.named_text("cls_token"), sep = builder.named_text("sep_token");
  const std::string single = cls + " $A " + sep;
  builder.set_template(pieces_of(single), pieces_of(single + " " + sep + " $B " + sep), {cls, sep});
}

void construct_gpt2(ClassBuilder& builder) {
  begin_byte_level(builder, builder.arguments.flag("add_prefix_space", false));
  name_all(builder, "<|endoftext|>", "<|endoftext|>", "<|endoftext|>", nullptr);
  builder.finish();
}

void construct_code_gen(ClassBuilder& builder) {
  if (builder.arguments.flag("return_token_type_ids", false))
    builder.settings.model_input_names.push_back("token_type_ids");
  begin_byte_level(builder, builder.arguments.flag("add_prefix_space", false));
  builder.definition.post_processor = byte_level(true, false);
  name_all(builder, "<|endoftext|>", "<|endoftext|>", "<|endoftext|>", nullptr);
  builder.finish();
}

void construct_gpt_neox(ClassBuilder& builder) {
  begin_byte_level(builder, builder.arguments.flag("add_prefix_space", false),
                   builder.arguments.flag("trim_offsets", true));
  builder.definition.normalizer = components::plain("NFC");
  name_all(builder, "<|endoftext|>", "<|endoftext|>", "<|endoftext|>", "<|padding|>");
  builder.finish();
  builder.update_post_processor();
}

void construct_cohere(ClassBuilder& builder) {
  const bool prefix = builder.arguments.flag("add_prefix_space", false);
  builder.settings.pads_left = true;
  begin_byte_level(builder, prefix);
  builder.definition.normalizer = components::plain("NFC");
  builder.definition.pre_tokenizer = components::pre_tokenizers(
      {{{"type", "Digits"}, {"individual_digits", true}}, byte_level(prefix)});
  name_all(builder, "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<UNK>", "<PAD>", "<SEP>", "<CLS>");
  builder.named("mask_token", "<MASK_TOKEN>");
  builder.finish();
  builder.post_init();
}

void begin_qwen(ClassBuilder& builder, const char* expression, const VocabularyFiles& files) {
  begin_byte_level(builder, false, true, files);
  builder.definition.normalizer = components::plain("NFC");
  builder.definition.pre_tokenizer = components::pre_tokenizers(
      {components::split({{"Regex", expression}}, "Isolated", false),
       byte_level(builder.arguments.optional_flag("add_prefix_space").value_or(false), true,
                  false)});
  name_all(builder, nullptr, "<|endoftext|>", "<|endoftext|>", "<|endoftext|>");
  builder.finish();
}

void construct_qwen2(ClassBuilder& builder) {
  begin_qwen(
      builder,
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      kByteLevelFiles);
  builder.restore_flags();
}

void construct_qwen3_5(ClassBuilder& builder) {
  begin_qwen(
      builder,
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
      {});
}

void construct_blenderbot(ClassBuilder& builder) {
  begin_byte_level(builder, builder.arguments.flag("add_prefix_space", true));
  name_all(builder, "<s>", "</s>", "<unk>", "<pad>", "</s>", "<s>");
  builder.flagged("mask_token", "<mask>", true, false);
  builder.finish();
}

void construct_clip(ClassBuilder& builder) {
  ModelDefinition& model = begin_byte_level(builder, false);
  model.end_of_word_suffix = "</w>";
  model.unk_token = ClassBuilder::text_of(builder.named("unk_token", "<|endoftext|>"));
  builder.definition.normalizer =
      components::normalizers({components::plain("NFC"), components::replace_regex(R"(\s+)", " "),
                               components::plain("Lowercase")});
  builder.definition.pre_tokenizer = components::pre_tokenizers(
      {components::split(
           {{"Regex",
             R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)"}},
           "Removed", true),
       byte_level(false)});
  builder.named("bos_token", "<|startoftext|>");
  builder.named("eos_token", "<|endoftext|>");
  builder.named("pad_token", "<|endoftext|>");
  builder.settings.blank_in_decoded = "</w>";
  builder.finish();
  const std::string bos = builder.named_text("bos_token"), eos = builder.named_text("eos_token");
  builder.set_roberta({eos, builder.required_id(eos)}, {bos, builder.required_id(bos)}, false,
                      false);
}

std::string id_of_whisper_language(const std::string& name) {
  for (const auto* list : {&whisper_languages(), &other_whisper_names()}) {
    for (const WhisperLanguage& language : *list) {
      if (language.name == name || language.code == name) return language.code;
    }
  }
  refuse("language", "be a language of Whisper", shown(name));
}

// The tokens that a transcription begins with.
std::vector<uint64_t> whisper_prefix(const ClassBuilder& builder) {
  const std::string task = builder.arguments.text("task", "");
  std::vector<uint64_t> ids = {builder.required_id("<|startoftranscript|>")};
  if (const std::string name = builder.arguments.text("language", ""); !name.empty()) {
    const auto& languages = whisper_languages();
    const auto found = std::ranges::find(languages, id_of_whisper_language(python::lower(name)),
                                         &WhisperLanguage::code);
    ids.push_back(ids[0] + 1 + static_cast<uint64_t>(found - languages.begin()));
  }
  if (!task.empty()) {
    if (task != "transcribe" && task != "translate")
      refuse("task", "be transcribe or translate", shown(task));
    ids.push_back(builder.required_id("<|" + task + "|>"));
  }
  if (!builder.arguments.flag("predict_timestamps", false))
    ids.push_back(builder.required_id("<|notimestamps|>"));
  return ids;
}

void construct_whisper(ClassBuilder& builder) {
  begin_byte_level(builder, builder.arguments.flag("add_prefix_space", false));
  for (const char* name : {"unk_token", "bos_token", "eos_token"})
    builder.flagged(name, "<|endoftext|>", false, false, true);
  builder.finish();
  const std::string eos = builder.named_text("eos_token");
  Template single;
  std::vector<std::pair<std::string, uint64_t>> specials = {{eos, builder.required_id(eos)}};
  for (const uint64_t id : whisper_prefix(builder)) {
    const std::optional<std::string> token = builder.token(id);
    if (!token)
      refuse("the vocabulary", "have the tokens of Whisper", "none of id " + std::to_string(id));
    single.push_back(*token + ":0");
    specials.emplace_back(*token, id);
  }
  Template pair = single;
  single.insert(single.end(), {"$A:0", eos + ":0"});
  pair.insert(pair.end(), {"$A:0", "$B:1", eos + ":1"});
  builder.set_template_with_ids(single, pair, specials);
  builder.settings.decodes_speech = {builder.id("<|startofprev|>"),
                                     builder.id("<|startoftranscript|>")};
}

void construct_nougat(ClassBuilder& builder) {
  begin_byte_level(builder, false);
  builder.definition.normalizer = components::plain("NFKC");
  const auto at = [](const char* text, const char* behavior) {
    return components::split({{"String", text}}, behavior, false);
  };
  builder.definition.pre_tokenizer = components::pre_tokenizers(
      {at("SPL1T-TH1S-Pl3A5E", "Removed"),
       {{"type", "Digits"}, {"individual_digits", true}},
       // An expression, but the class gives it as text.
       at(R"([\(\)\[\]\{\}]|([!\"#\$%\&'\*\+,\-\./:;<=>\?\\\^_`\|\~])\1*)", "Isolated"),
       at("\n", "Isolated"),
       byte_level(false)});
  const std::string bos = ClassBuilder::text_of(builder.named("bos_token", "<s>"));
  const std::string eos = ClassBuilder::text_of(builder.named("eos_token", "</s>"));
  builder.named("unk_token", "<unk>");
  builder.named("pad_token", "<pad>");
  builder.finish();
  builder.set_template_with_ids(pieces_of(bos + ":0 $A:0 " + eos + ":0"), pieces_of("$A:0 $B:1"),
                                {{eos, builder.required_id(builder.named_text("eos_token"))},
                                 {bos, builder.required_id(builder.named_text("bos_token"))}});
}

}  // namespace

Constructor byte_level_constructor(std::string_view name) {
  if (name == "RobertaTokenizer") return construct_roberta;
  if (name == "DebertaTokenizer") return construct_deberta;
  if (name == "GPT2Tokenizer") return construct_gpt2;
  if (name == "CodeGenTokenizer") return construct_code_gen;
  if (name == "GPTNeoXTokenizer") return construct_gpt_neox;
  if (name == "CohereTokenizer") return construct_cohere;
  if (name == "Qwen2Tokenizer") return construct_qwen2;
  if (name == "Qwen3_5Tokenizer") return construct_qwen3_5;
  if (name == "BlenderbotTokenizer") return construct_blenderbot;
  if (name == "CLIPTokenizer") return construct_clip;
  if (name == "WhisperTokenizer") return construct_whisper;
  if (name == "NougatTokenizer") return construct_nougat;
  return nullptr;
}

}  // namespace posenc::text
