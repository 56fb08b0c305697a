#include <algorithm>
#include <string_view>

#include "tokenizers/folder/classes.h"
#include "tokenizers/folder/language_codes.h"
#include "tokenizers/python/text.h"

// What the classes do that depends on more than one argument.
namespace posenc::text {
namespace {

// The index of a piece that Python finds by its text and a score of 0.
std::optional<uint64_t> index_of_zero(const ModelDefinition& model, const std::string& text,
                                      std::size_t from = 0) {
  for (std::size_t index = from; index < model.vocab.size(); ++index) {
    if (model.vocab[index].text == text && model.scores[index] == 0) return index;
  }
  return std::nullopt;
}

void find_unknown(ClassBuilder& builder) {
  ModelDefinition& model = builder.definition.model;
  if (const auto index = index_of_zero(model, builder.passed_text("unk_token")))
    model.unk_id = index;
}

void find_camembert_unknown(ClassBuilder& builder) {
  ModelDefinition& model = builder.definition.model;
  const std::string unk = builder.passed_text("unk_token");
  const auto found = std::ranges::find(model.vocab, std::string_view(unk), &Piece::text);
  model.unk_id =
      found == model.vocab.end() ? 0 : static_cast<uint64_t>(found - model.vocab.begin());
}

// Whether Python finds the string in the list, which is equal to no AddedToken.
bool has_string(const std::vector<GivenToken>& tokens, const std::string& text) {
  return std::ranges::count(tokens, GivenToken(text)) > 0;
}

void prepare_pegasus(ClassBuilder& builder) {
  const std::string unk = builder.passed_text("unk_token");
  builder.definition.model.unk_id = index_of_zero(builder.definition.model, unk, 1);
  if (!builder.definition.model.unk_id)
    refuse("the vocabulary", "have the unknown token with a score of 0, but not first", unk);
  const std::string sentence = builder.arguments.text("mask_token_sent", "<mask_1>");
  std::vector<GivenToken> extra;
  if (!has_string(builder.given_extra(), sentence)) extra.emplace_back(sentence);
  const int64_t offset = builder.arguments.number("offset", 103);
  for (int64_t i = 2; i < offset; ++i) extra.emplace_back("<unk_" + std::to_string(i) + ">");
  builder.set_extra(extra);
}

void add_sentinels(ClassBuilder& builder) {
  const int64_t count = builder.arguments.number("extra_ids", 100);
  std::vector<GivenToken> extra = builder.given_extra();
  const auto known = std::ranges::count_if(extra, [](const GivenToken& token) {
    return token.content.find("<extra_id_") != std::string::npos;
  });
  if (known > 0 && count > 0 && count != known) {
    refuse("additional_special_tokens", "have as many <extra_id_> as extra_ids says",
           std::to_string(known));
  }
  for (int64_t i = 0; known == 0 && i < count; ++i)
    extra.emplace_back("<extra_id_" + std::to_string(i) + ">");
  builder.set_extra(extra);
}

void add_madeup_words(ClassBuilder& builder) {
  std::vector<GivenToken> extra = builder.given_extra();
  for (int i = 0; i < 7; ++i) {
    const std::string word = "<madeupword" + std::to_string(i) + ">";
    if (!has_string(extra, word)) extra.emplace_back(word);
  }
  builder.set_extra(extra);
}

void prepare_code_llama(ClassBuilder& builder) {
  std::vector<GivenToken> extra = builder.given_extra();
  for (const char* name :
       {"prefix_token", "middle_token", "suffix_token", "eot_token", "fill_token"}) {
    const ClassBuilder::Named token = builder.passed(name);
    if (!token) continue;
    extra.push_back(*token);
    if (std::string_view(name) == "fill_token") builder.settings.infill_token = token->content;
  }
  builder.set_extra(extra);
  builder.arguments.set_default("add_bos_token", true);
}

void prepare_code_gen(ClassBuilder& builder) {
  if (builder.arguments.flag("return_token_type_ids", false))
    builder.settings.model_input_names.push_back("token_type_ids");
}

void prepare_clip(ClassBuilder& builder) { builder.settings.blank_in_decoded = "</w>"; }

void set_splinter_template(ClassBuilder& builder) {
  const std::string cls = builder.named_text("cls_token"), sep = builder.named_text("sep_token");
  const std::string question = builder.named_text("question_token");
  const std::string begin = cls + ":0 $A:0 ";
  const std::string pair = builder.settings.pads_left
                               ? begin + sep + ":0 $B:1 " + question + " . " + sep + ":1"
                               : begin + question + " . " + sep + ":0 $B:1 " + sep + ":1";
  builder.set_template(pieces_of(begin + sep + ":0"), pieces_of(pair), {cls, sep, question, "."});
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

void set_whisper_prefix(ClassBuilder& builder) {
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

}  // namespace

const std::vector<ClassExceptions>& class_exceptions() {
  static const std::vector<ClassExceptions> table = {
      {"BigBirdTokenizer", find_unknown},
      {"CLIPTokenizer", prepare_clip},
      {"CamembertTokenizer", find_camembert_unknown},
      {"CodeGenTokenizer", prepare_code_gen},
      {"CodeLlamaTokenizer", prepare_code_llama},
      {"DebertaV2Tokenizer", find_unknown},
      {"LasrTokenizer", add_sentinels},
      {"MBart50Tokenizer", insert_mbart50_languages, set_mbart50_languages},
      {"MBartTokenizer", name_mbart_languages, set_mbart_languages},
      {"NllbTokenizer", nullptr, set_nllb_languages},
      {"PegasusTokenizer", prepare_pegasus},
      {"SeamlessM4TTokenizer", nullptr, set_seamless_languages},
      {"SplinterTokenizer", nullptr, set_splinter_template},
      {"T5Tokenizer", add_sentinels},
      {"VideoPrismTokenizer", add_sentinels},
      {"WhisperTokenizer", nullptr, set_whisper_prefix},
      {"XGLMTokenizer", add_madeup_words},
  };
  return table;
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

}  // namespace posenc::text
