#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/python/python_class.h"

namespace posenc::text {

/// A class whose tokens are bytes, written as the characters of their numbers; added tokens have
/// the ids before them.
class ByteClass : public PythonClass {
 public:
  explicit ByteClass(uint32_t offset) : offset_(offset) {}

  void tokenize(std::string_view text, Scratch& scratch, PythonTokens& tokens) const override;
  std::optional<uint32_t> find(std::string_view token) const override;
  std::optional<uint32_t> unknown_id() const override { return std::nullopt; }
  std::optional<std::string> token(uint32_t id) const override;
  std::size_t size() const override { return 256; }
  std::size_t id_limit() const override { return offset_ + size(); }

 protected:
  /// The bytes of tokens, of which added ones stand for their text.
  static std::string bytes_of(const std::vector<std::string>& tokens,
                              const PythonAddedTokens& added);

 private:
  uint32_t offset_;
};

}  // namespace posenc::text
