#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace posenc::text {

/// The BPE of those classes in Python that merge the characters of a word, of which the last has
/// "</w>" after it: all places of the best pair at a time, from the left.
class WordMerges {
 public:
  /// Adds a pair of the next rank; of a pair that is there twice the last rank counts.
  void add(std::string_view left, std::string_view right);
  /// Takes a line's number without a pair that could be found.
  void skip() { ++count_; }

  /// The symbols of a word in UTF-8; that with "</w>" is the last. `word` has the suffix already.
  void split(std::string_view word_and_suffix, std::vector<std::string_view>& symbols) const;

  static constexpr std::string_view kSuffix = "</w>";

 private:
  uint32_t rank(std::string_view left, std::string_view right) const;

  static constexpr uint32_t kNone = UINT32_MAX;
  std::unordered_map<std::string, uint32_t> ranks_;  // by both, with a blank between
  uint32_t count_ = 0;
};

}  // namespace posenc::text
