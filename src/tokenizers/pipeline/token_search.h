#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  static constexpr uint32_t kNone = UINT32_MAX;

  // Tokens that share a begin share its nodes.
  struct Trie {
    struct Node {
      std::vector<std::pair<char, uint32_t>> children;  // in the order of the bytes
      uint32_t token = kNone;
      uint32_t link = 0;  // the node of the longest other begin that this one ends with
    };
    std::vector<Node> nodes = std::vector<Node>(1);

    /// The child, or 0.
    uint32_t child(uint32_t node, char byte) const;
    uint32_t make_child(uint32_t node, char byte);
    void add_links();
  };
  struct Token {
    std::string text;
    uint32_t value;
  };

  std::size_t next_begin(std::string_view text, std::size_t from) const;
  uint32_t longest(std::string_view text, std::size_t at) const;
  std::vector<uint32_t> longest_everywhere(std::string_view text) const;

  std::vector<Token> tokens_;
  Trie forward_, backward_;
  bool is_backward_ = false;
  std::array<bool, 256> begins_{};  // whether a token begins with this byte
  std::string first_bytes_;         // those bytes
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
