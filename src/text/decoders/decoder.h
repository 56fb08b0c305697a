#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace posenc::text {

/// Turns tokens into the pieces of a text.
class Decoder {
 public:
  virtual ~Decoder() = default;

  /// Changes the tokens to pieces whose concatenation is the text.
  virtual void decode(std::vector<std::string>& tokens) const = 0;
};

/// The decoder that a component of tokenizer.json describes; null for null: tokens are then joined
/// by blanks. Throws TokenizerError.
std::unique_ptr<const Decoder> make_decoder(const nlohmann::json& component);

}  // namespace posenc::text
