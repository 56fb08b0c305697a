#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tokenizers/definition/definition.h"
#include "tokenizers/models/trie.h"

namespace posenc::text {

/// The tokens that PythonBackend of transformers cuts out of a text before its class sees it. By
/// Python's rules: a word ends at a blank, and white space is that of str.strip().
class PythonAddedTokens {
 public:
  /// Adds a token; one that had the id has it no more, but its text keeps it.
  void add(uint32_t id, const AddedToken& token);
  /// Cuts texts at the tokens that there are now, and still at those before.
  void update_cuts();
  /// A text at which texts are cut without being one of these tokens.
  void add_cut(std::string_view text) { cut_texts_.emplace(text); }
  /// Is called once, when texts have all their cuts.
  void finish();
  /// Says that a token is special.
  void add_special(const std::string& text) { specials_.insert(text); }

  /// The token of an id; null for none.
  const AddedToken* find(uint32_t id) const;
  /// The id of a token; null for none.
  const uint32_t* id(std::string_view text) const;
  bool is_special(std::string_view text) const { return specials_.contains(text); }
  const std::map<uint32_t, AddedToken>& tokens() const { return tokens_; }

  /// Cuts UTF-8 text into parts, of which each added token is one.
  void split(std::string_view text, std::vector<std::string>& parts) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  // A possible start of a token.
  struct Start {
    std::size_t at;
    Trie::Node node;
  };

  bool follow(Trie::Node& node, std::string_view text, std::size_t& at) const;
  bool is_cut(Trie::Node node) const { return trie_.value(node) != Trie::kNoValue; }
  std::vector<std::size_t> cuts(std::string_view text) const;
  std::size_t longest(std::string_view text, const std::vector<Start>& starts, std::size_t which,
                      std::size_t current, std::vector<std::size_t>& cuts) const;
  void apply_flags(std::vector<std::string>& parts) const;

  std::map<uint32_t, AddedToken> tokens_;
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> ids_;
  std::unordered_set<std::string, Hash, std::equal_to<>> specials_;
  std::set<std::string, std::less<>> cut_texts_;
  Trie trie_;  // of these
  Trie::Node root_ = Trie::kNone;
};

}  // namespace posenc::text
