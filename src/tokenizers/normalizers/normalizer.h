#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "tokenizers/unicode/aligned_text.h"

namespace posenc::text {

/// Changes a text before it is cut. Immutable; any number of threads may use one.
class Normalizer {
 public:
  virtual ~Normalizer() = default;

  /// `text` is not empty. Throws TokenizerError where a search takes too long, and where the
  /// package panics.
  virtual void normalize(AlignedText& text) const = 0;
};

using NormalizerPtr = std::unique_ptr<const Normalizer>;

/// The normaliser that a component of tokenizer.json describes; null for null. Throws
/// TokenizerError.
NormalizerPtr make_normalizer(const nlohmann::json& component);

}  // namespace posenc::text
