#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::text {

/// The replacements of a SentencePiece model (`precompiled_charsmap`): a trie as darts-clone writes
/// it, whose keys are what is replaced.
class Charsmap {
 public:
  /// Throws TokenizerError, which names `part`, for one that is damaged.
  Charsmap(const std::string& blob, const char* part);

  /// What replaces the shortest key that `text` begins with.
  std::optional<std::string_view> of_shortest(std::string_view text) const;
  /// The same of the longest key, whose bytes are written to `length`.
  std::optional<std::string_view> of_longest(std::string_view text, std::size_t& length) const;
  /// Whether a key begins with this byte.
  bool begins_key(char byte) const;

 private:
  bool has_valid_units() const;
  bool has_valid_nodes() const;
  bool is_text(uint32_t value) const;
  std::string_view text_at(uint32_t value) const;
  // Calls `found` with the length and the value of each key that `text` begins with, until it
  // returns false.
  template <typename Found>
  void for_each_key(std::string_view text, Found&& found) const;

  std::vector<uint32_t> units_;  // each has the label that leads to it, where its children are, and
                                 // whether a value is among them
  std::string texts_;            // each ends with NUL
};

}  // namespace posenc::text
