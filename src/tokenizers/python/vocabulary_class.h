#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizers/models/vocabulary.h"
#include "tokenizers/python/python_class.h"

namespace posenc::text {

/// A class whose tokens are those of a vocab.json.
class VocabularyClass : public PythonClass {
 public:
  /// `unknown` is the unknown token; nothing for none.
  VocabularyClass(std::shared_ptr<const Vocabulary> vocabulary, std::optional<std::string> unknown)
      : vocabulary_(std::move(vocabulary)), unknown_(std::move(unknown)) {}

  std::optional<uint32_t> find(std::string_view token) const override {
    return vocabulary_->id(token);
  }
  std::optional<uint32_t> unknown_id() const override {
    return unknown_ ? vocabulary_->id(*unknown_) : std::nullopt;
  }
  std::optional<std::string> token(uint32_t id) const override {
    const auto found = vocabulary_->token(id);
    return found ? std::string(*found) : unknown_;
  }
  std::size_t size() const override { return vocabulary_->size(); }

 protected:
  const Vocabulary& vocabulary() const { return *vocabulary_; }

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::optional<std::string> unknown_;
};

}  // namespace posenc::text
