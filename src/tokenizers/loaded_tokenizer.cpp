#include "tokenizers/loaded_tokenizer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "posenc/tokenizers/error.h"
#include "tokenizers/decoders/replace_all.h"
#include "tokenizers/folder/files.h"
#include "tokenizers/pipeline/tokenizer_pipeline.h"
#include "tokenizers/python/python_pipeline.h"
#include "tokenizers/python/text.h"
#include "tokenizers/unicode/characters.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

FolderSettings file_settings(const std::optional<PaddingRule>& padding,
                             const std::optional<TruncationRule>& truncation) {
  FolderSettings settings;
  if (padding) settings.pads_left = padding->on_left;
  if (truncation) {
    settings.truncates_left = truncation->from_left;
    settings.model_max_length = static_cast<int64_t>(truncation->max_length);
  }
  return settings;
}

bool is_of_type(const nlohmann::json& component, const char* type) {
  return component.is_object() && component.value("type", "") == type;
}

// BertNormalizer's own lowercasing does not count, as in sentence-transformers.
void put_lowercase_first(nlohmann::json& normalizer) {
  const nlohmann::json lowercase = {{"type", "Lowercase"}};
  nlohmann::json list = nlohmann::json::array();
  if (is_of_type(normalizer, "Sequence")) {
    list = normalizer["normalizers"];
  } else if (!normalizer.is_null()) {
    list.push_back(normalizer);
  }
  const bool has_it = std::any_of(list.begin(), list.end(), [](const nlohmann::json& one) {
    return is_of_type(one, "Lowercase");
  });
  if (has_it) return;
  list.insert(list.begin(), lowercase);
  normalizer = {{"type", "Sequence"}, {"normalizers", std::move(list)}};
}

// The end of the digits that begin at `at`: those of all scripts, as in Python.
std::size_t digits_end(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    std::size_t end = at;
    if (unicode::character(next_character(text, end)).category != unicode::Nd) break;
    at = end;
  }
  return at;
}

// The end of the time stamp that begins at `at`; `at` for none.
std::size_t time_stamp_end(std::string_view text, std::size_t at) {
  if (!text.substr(at).starts_with("<|")) return at;
  const std::size_t whole = digits_end(text, at + 2);
  if (whole == at + 2 || whole >= text.size() || text[whole] != '.') return at;
  const std::size_t end = digits_end(text, whole + 1);
  return end > whole + 1 && text.substr(end).starts_with("|>") ? end + 2 : at;
}

// Takes Whisper's time stamps, such as <|1.20|>, out.
void remove_time_stamps(std::string& text) {
  std::string kept;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = time_stamp_end(text, at);
    if (end == at) kept += text[at];
    at = std::max(end, at + 1);
  }
  text = std::move(kept);
}

// What transformers does with decoded text where `clean_up_tokenization_spaces` is set: takes the
// blanks before punctuation and contractions out.
void clean_up_spaces(std::string& text) {
  constexpr const char* kReplacements[][2] = {
      {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
      {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (const auto& [from, to] : kReplacements) replace_all(text, from, to);
}

// What follows the prompt that Whisper was given.
std::vector<uint32_t> without_prompt(const FolderSettings::SpeechTokens& tokens,
                                     const std::vector<uint32_t>& ids) {
  if (ids.empty() || ids.front() != tokens.prompt) return ids;
  return {std::find(ids.begin(), ids.end(), tokens.start), ids.end()};
}

std::unique_ptr<const TextPipeline> pipeline_of(FolderTokenizer& read,
                                                const FolderChanges& changes) {
  if (read.python) {
    if (!changes.special_tokens.empty()) {
      refuse("tokenizer_class", "be one that transformers does not run in Python, to add tokens to",
             read.settings.tokenizer_class);
    }
    if (changes.lowercases_first) {
      refuse("do_lower_case",
             "be false for " + read.settings.tokenizer_class +
                 ", which sentence-transformers does not lowercase",
             "true");
    }
    return std::make_unique<PythonPipeline>(std::move(*read.python), read.settings);
  }
  if (changes.lowercases_first) put_lowercase_first(read.definition.normalizer);
  for (const std::string& token : changes.special_tokens)
    read.definition.added_tokens.push_back(
        {.content = token, .normalized = false, .special = true, .id = std::nullopt});
  read_padding(read.definition.padding);  // each call has its own rules, but these have to be right
  read_truncation(read.definition.truncation);
  return std::make_unique<TokenizerPipeline>(std::move(read.definition),
                                             read.settings.split_special_tokens);
}

}  // namespace

LoadedTokenizer::LoadedTokenizer(std::unique_ptr<const TextPipeline> pipeline,
                                 FolderSettings settings)
    : settings_(std::move(settings)), pipeline_(std::move(pipeline)) {}

std::shared_ptr<const LoadedTokenizer> LoadedTokenizer::of_files(const FolderFiles& files,
                                                                 const FolderChanges& changes) {
  FolderTokenizer read = read_folder(files);
  std::unique_ptr<const TextPipeline> pipeline = pipeline_of(read, changes);
  std::shared_ptr<LoadedTokenizer> loaded(
      new LoadedTokenizer(std::move(pipeline), std::move(read.settings)));
  if (const auto id = loaded->special_token_id("pad_token")) loaded->padding_ = {*id, 0};
  return loaded;
}

std::shared_ptr<const LoadedTokenizer> LoadedTokenizer::of_text(std::string_view text) {
  Definition definition = read_definition(text);
  const auto padding = read_padding(definition.padding);
  const auto truncation = read_truncation(definition.truncation);
  std::shared_ptr<LoadedTokenizer> loaded(
      new LoadedTokenizer(std::make_unique<TokenizerPipeline>(std::move(definition)),
                          file_settings(padding, truncation)));
  if (padding) loaded->padding_ = {padding->pad_id, padding->pad_type_id};
  loaded->own_padding_ = padding;
  loaded->own_truncation_ = truncation;
  return loaded;
}

std::shared_ptr<const LoadedTokenizer> LoadedTokenizer::from_folder(const std::string& folder,
                                                                    const FolderChanges& changes) {
  try {
    return of_files(FolderFiles(folder), changes);
  } catch (const TokenizerError& error) {
    throw error.in_file(folder).in_function("Tokenizer::from_folder");
  }
}

std::shared_ptr<const LoadedTokenizer> LoadedTokenizer::from_file(const std::string& path) {
  try {
    return of_text(read_file(path));
  } catch (const TokenizerError& error) {
    throw error.in_file(path).in_function("Tokenizer::from_file");
  }
}

std::shared_ptr<const LoadedTokenizer> LoadedTokenizer::from_memory(const FilesInMemory& files) {
  const bool is_file = files.size() == 1;
  try {
    return is_file ? of_text(files.front().second) : of_files(FolderFiles(files), {});
  } catch (const TokenizerError& error) {
    throw error.in_file(is_file ? files.front().first : "the files in memory")
        .in_function("Tokenizer::from_memory");
  }
}

const std::vector<uint32_t>& LoadedTokenizer::ids_before() const {
  std::call_once(before_found_, [this] {
    EncodeRequest request;
    request.add_special_tokens = false;
    EncodedRows rows;
    pipeline_->encode("abcdef", std::nullopt, request, 0, rows);
    ids_before_ = std::move(rows.ids);
  });
  return ids_before_;
}

bool LoadedTokenizer::has_types() const {
  const auto& names = settings_.model_input_names;
  return names.empty() || std::find(names.begin(), names.end(), "token_type_ids") != names.end();
}

std::optional<uint32_t> LoadedTokenizer::special_token_id(std::string_view name) const {
  for (const auto& [known, token] : settings_.special_tokens) {
    if (known == name) return pipeline_->token_to_id(token);
  }
  return std::nullopt;
}

std::vector<uint32_t> LoadedTokenizer::special_token_ids() const {
  std::vector<uint32_t> ids;
  const auto add = [&](const std::string& token) {
    const auto id = pipeline_->token_to_id(token);
    if (id && std::ranges::count(ids, *id) == 0) ids.push_back(*id);
  };
  for (const auto& [name, token] : settings_.special_tokens) add(token);
  for (const std::string& token : settings_.extra_special_tokens) add(token);
  return ids;
}

std::string LoadedTokenizer::decode(const std::vector<uint32_t>& ids,
                                    bool skip_special_tokens) const {
  std::string text;
  if (settings_.decodes_runs_once) {
    std::vector<uint32_t> once = ids;
    once.erase(std::unique(once.begin(), once.end()), once.end());
    if (padding_) std::erase(once, padding_->id);
    text = pipeline_->decode(once, skip_special_tokens);
  } else if (settings_.decodes_speech && skip_special_tokens) {
    text = pipeline_->decode(without_prompt(*settings_.decodes_speech, ids), true);
  } else {
    text = pipeline_->decode(ids, skip_special_tokens);
  }
  if (!settings_.blank_in_decoded.empty()) {
    replace_all(text, settings_.blank_in_decoded, " ");
    text = std::string(python::stripped(text));
  }
  if (settings_.clean_up_tokenization_spaces) clean_up_spaces(text);
  if (settings_.decodes_speech) remove_time_stamps(text);
  return text;
}

}  // namespace posenc::text
