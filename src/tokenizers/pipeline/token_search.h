#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizers/models/trie.h"

namespace posenc::text {

/// Finds the added tokens in a text: at each place the longest.
class TokenSearch {
 public:
  struct Match {
    std::size_t begin, end;
    uint32_t value;
  };
  class Matches;

  /// Adds a token, which is not empty. Returns the value of an equal one that was added before.
  std::optional<uint32_t> add(std::string_view token, uint32_t value);
  /// Is called once, when all tokens have been added.
  void finish();

 private:
  static constexpr uint32_t kNone = Trie::kNoValue;

  struct Token {
    std::string text;
    uint32_t value;
  };
  // Of a node of the reversed tokens: that of the longest other begin which it ends with, and its
  // longest token.
  struct Link {
    Trie::Node node = Trie::kNone;
    uint32_t token = kNone;
  };

  std::size_t next_begin(std::string_view text, std::size_t from) const;
  uint32_t longest(std::string_view text, std::size_t at) const;
  std::vector<uint32_t> longest_everywhere(std::string_view text) const;
  void add_links(const std::vector<Trie::Edge>& edges);

  std::vector<Token> tokens_;
  std::unordered_map<std::string, uint32_t> indices_;  // in tokens_
  Trie trie_;                                          // whose values are indices
  Trie::Node forward_ = Trie::kNone;
  Trie::Node backward_ = Trie::kNone;  // of the reversed tokens; none if all are short
  std::vector<Link> links_;            // of the nodes below it
  std::array<bool, 256> begins_{};     // whether a token begins with this byte
  std::string first_bytes_;            // those bytes
};

/// The tokens of one text, from its begin to its end.
class TokenSearch::Matches {
 public:
  Matches(const TokenSearch& search, std::string_view text);

  /// Finds the first token that begins at `from` or later. `from` must not fall.
  bool next(std::size_t from, Match& match) const;

 private:
  const TokenSearch& search_;
  std::string_view text_;
  std::vector<uint32_t> longest_;  // at each byte, where tokens are long
};

}  // namespace posenc::text
