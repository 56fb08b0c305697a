#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/definition/definition.h"

namespace posenc::text {

/// A token of a piece of text, and its place in it.
struct Token {
  uint32_t id;
  uint32_t begin, end;  // in bytes of the piece; may lie past it, as affixes do in the package
  bool surface =
      false;  // its text is that of the piece and not that of the id: Unigram's unknown runs
};

/// Memory that a thread keeps from piece to piece: of the searches, and a bounded cache of words.
class Scratch {
 public:
  virtual ~Scratch() = default;
};

/// Splits a pre-token into the tokens of a vocabulary.
class Model {
 public:
  virtual ~Model() = default;

  /// Memory for calls of tokenize(), one for each thread.
  virtual std::unique_ptr<Scratch> scratch() const = 0;
  /// Adds the tokens of `piece`, which is valid UTF-8 and not empty, to `tokens`.
  virtual void tokenize(std::string_view piece, Scratch& scratch,
                        std::vector<Token>& tokens) const = 0;

  virtual std::optional<uint32_t> token_to_id(std::string_view token) const = 0;
  virtual std::optional<std::string_view> id_to_token(uint32_t id) const = 0;
  /// Number of tokens.
  virtual std::size_t size() const = 0;
};

/// The model of a definition. Throws TokenizerError for one that contradicts itself, and whose
/// vocabulary lacks what it needs.
std::unique_ptr<const Model> make_model(const Definition& definition);

}  // namespace posenc::text
