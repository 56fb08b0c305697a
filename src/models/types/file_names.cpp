#include "models/types/file_names.h"

#include <algorithm>

#include "base/match_pattern.h"
#include "core/named.h"

namespace posenc::hf {
namespace {

#include "models/types/file_names.inc"

// Those of classes and releases that no longer have them.
constexpr std::string_view kOldBuffers =
    "*position_ids *inv_freq *masked_bias *num_batches_tracked *.version version *_float_tensor "
    "*embed_positions.weights *_embeddings._weight";
// GPT-2's and others' causal masks, (1, 1, L, L).
constexpr std::string_view kOldMasks = "*attn.bias *attention.bias *causal_mask";
constexpr std::size_t kRankOfMasks = 4;

// Whether `is_it` holds for one of the words.
template <typename Test>
bool any_word(std::string_view words, const Test& is_it) {
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    if (is_it(word)) return true;
    words.remove_prefix(std::min(word.size() + 1, words.size()));
  }
  return false;
}

bool any_matches(std::string_view patterns, std::string_view name) {
  return any_word(
      patterns, [&](std::string_view pattern) { return match_pattern(pattern, name).has_value(); });
}

}  // namespace

bool FileNames::ignores(std::string_view name) const { return any_matches(ignored, name); }

bool FileNames::has_module(std::string_view component) const {
  return any_word(modules, [&](std::string_view word) { return word == component; });
}

const FileNames& file_names_of(std::string_view model_type) {
  static constexpr FileNames kNone = {};
  const FileNames* const found = detail::find_named(kFileNames, model_type);
  return found == nullptr ? kNone : *found;
}

bool is_old_buffer(std::string_view name, std::size_t rank) {
  return any_matches(kOldBuffers, name) || (rank == kRankOfMasks && any_matches(kOldMasks, name));
}

}  // namespace posenc::hf
