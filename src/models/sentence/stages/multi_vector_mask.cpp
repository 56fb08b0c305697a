#include "models/sentence/stages/token_rows.h"

namespace posenc::stages {
namespace {

using sentence::MultiVectorMask;

std::vector<std::string> skiplist_in(const Settings& config) {
  constexpr const char* kWords = "skiplist_words";
  std::vector<std::string> words;
  if (!config.has(kWords)) return words;
  const nlohmann::json& list = config.value(kWords);
  if (!list.is_array()) config.refuse(kWords, "must be a list of words");
  for (const nlohmann::json& word : list) {
    if (!word.is_string()) config.refuse(kWords, "must be a list of words", word);
    words.push_back(word);
  }
  return words;
}

sentence::Stage read_mask(const Settings& config) {
  MultiVectorMask mask;
  mask.skiplist_words = skiplist_in(config);
  mask.skiplist_tasks = tasks_in(config, "skiplist_tasks");
  mask.keep_only_token_ids =
      config.integers_if("keep_only_token_ids").value_or(std::vector<int64_t>());
  return mask;
}

void follow_mask(const sentence::Stage&, const StagePlace& place, StageWidths& widths) {
  widths.check_there(sentence::Feature::Tokens, place);
  TORCH_CHECK_VALUE(
      !widths.are_rows, place,
      ", must be the only one, before stages that pool tokens. Got another before it");
  widths.are_rows = true;
}

void run_mask(const sentence::Stage&, const StageRun& run) {
  take_rows(run.features, run.inputs.scored);
}

}  // namespace

const StageKind kMultiVectorMask = {.name = "MultiVectorMask",
                                    .read = read_mask,
                                    .follow = follow_mask,
                                    .run = run_mask,
                                    .takes_rows = true};

}  // namespace posenc::stages
