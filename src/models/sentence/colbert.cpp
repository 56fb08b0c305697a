// ColBERT's folders: the settings of PyLate, Stanford's layout, and the head of bge-m3.

#include "models/sentence/colbert.h"

#include <c10/util/Exception.h>

#include <filesystem>

#include "models/config/model_folder.h"
#include "models/sentence/stage_settings.h"
#include "models/sentence/transformer_settings.h"
#include "posenc/models/frozen_file.h"
#include "weights/common/file.h"
#include "weights/load/source.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using sentence::Feature;

constexpr int64_t kExpandedLength = 32;  // of queries that are filled up
constexpr const char* kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
constexpr const char* kAttend[] = {"attend_to_expansion_tokens", "attend_to_mask_tokens"};

std::vector<std::string> punctuation() {
  std::vector<std::string> marks;
  for (const char* at = kPunctuation; *at != '\0'; ++at) marks.emplace_back(1, *at);
  return marks;
}

json fixed_expansion(bool attend, int64_t length) {
  return {{"strategy", "fixed"}, {"attend", attend}, {"length", length}};
}

SentenceStageFolder skiplist_mask(std::vector<std::string> skipped) {
  return {sentence::MultiVectorMask{std::move(skipped)}, ""};
}

SentenceStageFolder token_normalize() {
  return {sentence::Normalize{Feature::Tokens, Feature::Tokens}, ""};
}

std::optional<int64_t> maxlen_in(const Settings& config, const char* name) {
  constexpr int64_t kMost = INT32_MAX;
  return config.has(name) ? std::optional(config.integer(name, 1, kMost)) : std::nullopt;
}

// What PyLate had beside the stages; those of 6.2 have it in a stage.
void read_pylate(const Settings& config, ColbertSettings& settings) {
  bool is_marked = false;
  for (const char* name :
       {"query_length", "document_length", "query_expansion", "do_query_expansion", kAttend[0],
        kAttend[1], "query_prefix", "document_prefix", "skiplist_words"})
    is_marked = is_marked || config.mentions(name);
  for (const char* name : {"query_length", "document_length"})
    if (const auto length = maxlen_in(config, name)) settings.transformer[name] = *length;
  if (config.mentions("query_expansion")) {
    settings.transformer["query_expansion"] = config.value("query_expansion");
  } else if (is_marked && config.has("do_query_expansion") && !config.flag("do_query_expansion")) {
    settings.transformer["query_expansion"] = nullptr;
  } else if (is_marked) {
    const char* const attend = kAttend[config.mentions(kAttend[0]) ? 0 : 1];
    settings.transformer["query_expansion"] = fixed_expansion(
        config.flag(attend, false), maxlen_in(config, "query_length").value_or(kExpandedLength));
    settings.transformer.erase("query_length");
  }
  for (const auto& [name, prompt] :
       {std::pair("query_prefix", "query"), std::pair("document_prefix", "document")})
    if (config.mentions(name)) settings.markers[prompt] = config.text(name, "");
}

std::vector<std::string> skiplist_of(const Settings& config) {
  const json& list = config.value("skiplist_words");
  if (list.is_null()) return punctuation();
  std::vector<std::string> words;
  for (const json& word : list.is_array() ? list : json::array({nullptr})) {
    if (!word.is_string()) config.refuse("skiplist_words", "must be a list of words");
    words.push_back(word);
  }
  return words;
}

// A Dense whose weights (D', D) are among others in a file, or alone.
SentenceStageFolder dense_in(const char* caller, const std::string& folder, const std::string& file,
                             const std::string& prefix, bool bias) {
  const io::FileSource source(file);
  const auto* const weight = find_entry(source, prefix + "weight");
  if (weight == nullptr) {
    throw missing_tensor(source, prefix + "weight").in_file(file).in_function(caller);
  }
  const std::vector<int64_t> sizes(weight->sizes.begin(), weight->sizes.end());
  TORCH_CHECK_VALUE(sizes.size() == 2, "[", caller, "] ", file, ": ", prefix,
                    "weight must be (D', D). Got ", sizes);
  return {sentence::Dense{sizes[1], sizes[0], bias, Activation::Identity, false, Feature::Tokens,
                          Feature::Tokens},
          folder, file, prefix};
}

ColbertSettings stanford_settings(const char* caller, const std::string& folder) {
  const Settings config =
      settings_or_none(caller, (fs::path(folder) / "artifact.metadata").string());
  ColbertSettings settings;
  const auto marker = [&](const char* name, const char* fallback) {
    const std::string token = config.text(name, "");
    return (token.empty() ? fallback : token) + " ";
  };
  settings.markers = {{"query", marker("query_token_id", "[unused0]")},
                      {"document", marker("doc_token_id", "[unused1]")}};
  if (const auto length = maxlen_in(config, "doc_maxlen"))
    settings.transformer["document_length"] = *length;
  settings.transformer["query_expansion"] =
      fixed_expansion(config.flag("attend_to_mask_tokens", false),
                      maxlen_in(config, "query_maxlen").value_or(kExpandedLength));
  settings.has_all_stages = true;
  const std::string weights = is_frozen_folder(folder)
                                  ? (fs::path(folder) / kProjectionFile).string()
                                  : weights_in(caller, folder);
  settings.stages = {
      dense_in(caller, folder, weights, "linear.", /*bias=*/false),
      skiplist_mask(config.flag("mask_punctuation", true) ? punctuation()
                                                          : std::vector<std::string>()),
      token_normalize()};
  return settings;
}

// All tokens but the first have a vector.
ColbertSettings head_settings(const char* caller, const std::string& folder) {
  sentence::MultiVectorMask mask;
  mask.skips_first = true;
  const std::string file = (fs::path(folder) / kTokenHead).string();
  return {{},
          json::object(),
          {dense_in(caller, folder, file, "", /*bias=*/true), {mask, ""}, token_normalize()},
          true};
}

}  // namespace

ColbertSettings colbert_settings(const char* caller, const SentenceModules& modules) {
  const std::string folder = modules.folder.string();
  const Settings config = model_settings(caller, folder);
  const bool is_of_pylate = is_pylate(config);
  if (!is_of_pylate && config.text("model_type", "") != "MultiVectorEncoder")
    return has_colbert_head(folder) ? head_settings(caller, folder)
                                    : stanford_settings(caller, folder);
  TORCH_CHECK_VALUE(modules.is_listed, "[", caller, "] ", folder,
                    ": must have a modules.json; sentence-transformers draws layers at random for "
                    "a ",
                    is_of_pylate ? "ColBERT" : "MultiVectorEncoder", " without one. Got no file");
  ColbertSettings settings;
  read_pylate(config, settings);
  if (is_of_pylate) settings.stages = {skiplist_mask(skiplist_of(config)), token_normalize()};
  return settings;
}

bool is_pylate(const Settings& config) {
  if (const auto type = config.text_if("model_type")) return *type == "ColBERT";
  return config.mentions("query_prefix") || config.mentions("document_prefix");
}

bool has_colbert_head(const std::string& folder) {
  return io::may_exist((fs::path(folder) / kTokenHead).string());
}

std::string marked(const std::string& marker, const std::string& prompt) {
  return prompt.starts_with(marker) ? prompt : marker + prompt;
}

}  // namespace posenc
