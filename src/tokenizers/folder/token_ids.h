#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizers/definition/definition.h"
#include "tokenizers/models/vocabulary.h"

namespace posenc::text {

/// The ids of a tokenizer to which tokens are added, as `tokenizers` gives them.
class TokenIds {
 public:
  /// Those of the definition's model. Throws TokenizerError for two tokens of one id.
  explicit TokenIds(const Definition& definition);

  /// Adds tokens in one call: each gets the id that the model has for it, or the next one after the
  /// model's count and the largest id of the calls before.
  void add(const std::vector<AddedToken>& tokens);
  std::optional<uint64_t> find(std::string_view token) const;
  std::optional<std::string> token(uint64_t id) const;
  /// Number of tokens.
  std::size_t size() const;
  bool is_added(std::string_view token) const;
  /// All that were added. Throws TokenizerError if one call would give them other ids.
  std::vector<AddedToken> added() const;

 private:
  struct Entry {
    AddedToken token;
    uint64_t id;
  };

  Vocabulary vocabulary_;
  uint64_t count_;  // of the model
  std::vector<Entry> added_;
  std::unordered_map<std::string, std::size_t> indices_;  // in added_
};

}  // namespace posenc::text
