#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::text {

/// Follows tokens that come one by one, to know without decoding all of them again whether their
/// text ends in U+FFFD.
class DecodedEnd {
 public:
  virtual ~DecodedEnd() = default;

  virtual void add(std::string_view token) = 0;
  virtual bool is_replacement() const = 0;
};

/// Turns tokens into the pieces of a text.
class Decoder {
 public:
  virtual ~Decoder() = default;

  /// Changes the tokens to pieces whose concatenation is the text.
  virtual void decode(std::vector<std::string>& tokens) const = 0;

  /// Follows the end of the text; null if only decode() tells it. The decoder must outlive it.
  virtual std::unique_ptr<DecodedEnd> follow_end() const { return nullptr; }
  /// Whether decode() changes each token by itself.
  virtual bool is_for_each_token() const { return false; }
  /// Whether a text ends in U+FFFD after decode() if it did before, and only then.
  virtual bool keeps_replacement() const { return false; }
};

/// The decoder that a component of tokenizer.json describes; null for null: tokens are then joined
/// by blanks. Throws TokenizerError.
std::unique_ptr<const Decoder> make_decoder(const nlohmann::json& component);

}  // namespace posenc::text
