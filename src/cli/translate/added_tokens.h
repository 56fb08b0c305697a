#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace posenc::cli {

/// A token that is taken out of a text before SentencePiece sees it, as transformers' AddedToken.
struct AddedToken {
  std::string text;
  bool single_word = false;  ///< only between spaces
  bool strips_left = false;  ///< takes the spaces before it
  bool strips_right = false;
};

/// The added tokens of a tokenizer.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// `ids` has the tokens' texts, and may have others: those whose id another token has taken
  /// since, which transformers goes on to know where SentencePiece makes a piece of them.
  AddedTokens(std::map<int64_t, AddedToken> tokens, std::unordered_map<std::string, int64_t> ids);

  /// nullptr where there is none.
  const AddedToken* find(int64_t id) const;
  const int64_t* id(const std::string& text) const;

  /// The parts of a text in UTF-8, added tokens each a part of its own, as transformers' slow
  /// tokenizers cut it.
  std::vector<std::string> split(std::string_view text) const;

 private:
  struct Node {
    std::map<char32_t, std::size_t> next;
    bool is_token = false;
  };
  // A token that may have begun.
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
