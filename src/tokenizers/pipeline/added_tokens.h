#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tokenizers/definition/definition.h"
#include "tokenizers/models/model.h"
#include "tokenizers/normalizers/normalizer.h"
#include "tokenizers/pipeline/token_search.h"

namespace posenc::text {

/// A part of a text: an added token with the blanks that it takes, or what is between two.
struct AddedPart {
  std::size_t begin, end;
  std::optional<uint32_t> token;
};

/// The tokens that are cut out of a text before the model sees it, and their ids.
class AddedTokens {
 public:
  /// With `split_special_tokens`, special ones are not cut out. Throws TokenizerError for tokens of
  /// which the package chooses one at random.
  AddedTokens(const std::vector<AddedToken>& tokens, const Model& model,
              const Normalizer* normalizer, bool split_special_tokens);

  /// Cuts a text at the tokens that are searched in it as it is, or at those that are searched in
  /// it once it is normalised. The parts cover it; two of them may share blanks.
  void cut(std::string_view text, bool is_normalized, std::vector<AddedPart>& parts) const;

  std::optional<uint32_t> token_to_id(std::string_view token) const;
  /// Those that are or were normalised are spelled as their normal form.
  std::optional<std::string_view> id_to_token(uint32_t id) const;
  bool is_special(std::string_view token) const;
  /// Number of tokens that the model lacks.
  std::size_t new_tokens() const { return new_tokens_; }

 private:
  // A token, as it is searched.
  struct Searched {
    AddedToken token;
    uint32_t id;
    std::string text;      // that is searched
    std::string spelling;  // that is decoded
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  std::unordered_map<std::string, Searched, Hash, std::equal_to<>> tokens_;  // by content
  std::unordered_map<uint32_t, const Searched*> by_id_;
  std::unordered_set<std::string, Hash, std::equal_to<>> special_;
  TokenSearch raw_, normalized_;  // their values are ids
  std::size_t new_tokens_ = 0;
  bool split_special_tokens_;
};

}  // namespace posenc::text
