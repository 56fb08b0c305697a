#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tokenizers/models/model.h"
#include "tokenizers/models/vocabulary.h"

namespace posenc::text {

/// What all models share.
class VocabularyModel : public Model {
 public:
  explicit VocabularyModel(const Definition& definition)
      : vocabulary_(definition), unk_token_(definition.model.unk_token) {
    if (unk_token_) unk_ = vocabulary_.id(*unk_token_);
  }

  std::optional<uint32_t> token_to_id(std::string_view token) const override {
    return vocabulary_.id(token);
  }
  std::optional<std::string_view> id_to_token(uint32_t id) const override {
    return vocabulary_.token(id);
  }
  std::size_t size() const override { return vocabulary_.size(); }

 protected:
  const Vocabulary& vocabulary() const { return vocabulary_; }
  /// The id of unk_token. As in the package, it is missed only when `word` needs it: then throws
  /// TokenizerError.
  uint32_t unk_for(std::string_view word) const {
    if (!unk_) refuse_unknown(word);
    return *unk_;
  }
  bool has_unk_token() const { return unk_token_.has_value(); }

 private:
  [[noreturn]] void refuse_unknown(std::string_view word) const;

  Vocabulary vocabulary_;
  std::optional<std::string> unk_token_;
  std::optional<uint32_t> unk_;
};

}  // namespace posenc::text
