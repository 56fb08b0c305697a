#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace posenc::cli {

/// A token that is split from a text before SentencePiece sees it, like transformers' AddedToken.
struct AddedToken {
  std::string text;
  bool single_word = false;  ///< only between spaces
  bool strips_left = false;  ///< also consumes the spaces before it
  bool strips_right = false;
};

/// The added tokens of a tokenizer.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// `ids` contains the texts of `tokens`, and possibly others whose ids now belong to other
  /// tokens: transformers still recognises those if SentencePiece produces such a piece.
  AddedTokens(std::map<int64_t, AddedToken> tokens, std::unordered_map<std::string, int64_t> ids);

  /// nullptr if there is none.
  const AddedToken* find(int64_t id) const;
  const int64_t* id(const std::string& text) const;

  /// Splits UTF-8 text into parts, with each added token as a separate part, like transformers'
  /// slow tokenizers.
  std::vector<std::string> split(std::string_view text) const;

 private:
  struct Node {
    std::map<char32_t, std::size_t> next;
    bool is_token = false;
  };
  // A possible start of a token.
  struct Start {
    std::size_t at, node;
  };

  void insert(std::u32string_view token);
  bool follow(std::size_t& node, char32_t letter) const;
  std::vector<std::size_t> cuts(std::u32string_view text) const;
  std::size_t longest(std::u32string_view text, const std::vector<Start>& starts, std::size_t which,
                      std::size_t current, std::vector<std::size_t>& cuts) const;

  std::map<int64_t, AddedToken> tokens_;
  std::unordered_map<std::string, int64_t> ids_;
  std::vector<Node> nodes_ = std::vector<Node>(1);
};

}  // namespace posenc::cli
