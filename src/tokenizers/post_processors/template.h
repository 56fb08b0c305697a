#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tokenizers/definition/component.h"
#include "tokenizers/post_processors/post_processor.h"

namespace posenc::text {

/// TemplateProcessing: texts and special tokens in any order.
class TemplateProcessing {
 public:
  explicit TemplateProcessing(const Component& component);

  std::size_t added_tokens(bool is_pair) const;
  /// `plan` has one encoding, or two for a pair.
  Plan apply(Plan plan, bool is_pair, bool with_special) const;

 private:
  // A text, or the special token of this name.
  struct Piece {
    std::optional<int> text;
    std::string special;
    uint32_t type;
  };

  std::vector<Piece> read(const Component& component, const char* field) const;
  Piece read_piece(const Component& component, const char* field, const nlohmann::json& json) const;
  void read_special_tokens(const Component& component);

  std::string part_;
  std::map<std::string, std::vector<SpecialToken>> special_tokens_;
  std::vector<Piece> pieces_[2];  // single, pair
};

}  // namespace posenc::text
