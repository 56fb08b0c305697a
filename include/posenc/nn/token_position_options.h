#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "posenc/core/embedding_init.h"
#include "posenc/core/scale.h"
#include "posenc/export.h"
#include "posenc/nn/positional_encoding.h"

// An option like that of TORCH_ARG for a base class: the setter returns `Derived`, the class that
// is used.
#define POSENC_DERIVED_ARG(T, name)                        \
 public:                                                   \
  Derived& name(T value) {                                 \
    this->name##_ = std::move(value);                      \
    return static_cast<Derived&>(*this);                   \
  }                                                        \
  const T& name() const noexcept { return this->name##_; } \
  T& name() noexcept { return this->name##_; }             \
                                                           \
 private:                                                  \
  T name##_

namespace posenc POSENC_EXPORT {

/// Options of the modules that embed tokens and add positions, InputEmbedding and
/// TokenAndPositionEmbedding.
template <typename Derived>
class TokenPositionOptions {
 public:
  /// Number of tokens in the vocabulary.
  POSENC_DERIVED_ARG(int64_t, vocab_size);
  /// Width of the embeddings.
  POSENC_DERIVED_ARG(int64_t, d_model);
  /// Number of positions in the table.
  POSENC_DERIVED_ARG(int64_t, max_len);
  /// Factor of the token vectors, before positions are added.
  POSENC_DERIVED_ARG(Scale, scale);
  /// How the token table is initialised; InverseSqrtDim for a model that is trained from scratch
  /// with Scale::SqrtDim or with an output layer tied to the table.
  POSENC_DERIVED_ARG(EmbeddingInit, embedding_init) = EmbeddingInit::StandardNormal;
  /// A row of the token table that is initialised to zeros and gets no gradient.
  POSENC_DERIVED_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  /// Probability of zeroing an element of the sum in training, in [0, 1).
  POSENC_DERIVED_ARG(double, dropout);
  /// Where the rows of positions are taken from.
  POSENC_DERIVED_ARG(TableSource, table_source) = TableSource::Buffer;
  /// Whether ids are (B, L); false: (L, B).
  POSENC_DERIVED_ARG(bool, batch_first) = true;
  /// Extends the table, keeping device and dtype, instead of throwing for a position past its end.
  POSENC_DERIVED_ARG(bool, grow) = false;
  /// The sinusoid; by default the paper's. Its dim must be d_model.
  POSENC_DERIVED_ARG(std::optional<SinusoidOptions>, sinusoid) = std::nullopt;
  /// Makes the gradient of the token table sparse, as in nn.Embedding, and coalesced.
  POSENC_DERIVED_ARG(bool, sparse) = false;
  /// Lets a forward that records no gradient reuse the memory of the last output, once no one else
  /// holds that output.
  POSENC_DERIVED_ARG(bool, reuse_output) = false;

 protected:
  /// The sizes, and what differs between the modules.
  TokenPositionOptions(int64_t vocab_size, int64_t d_model, int64_t max_len, Scale scale,
                       double dropout)
      : vocab_size_(vocab_size),
        d_model_(d_model),
        max_len_(max_len),
        scale_(scale),
        dropout_(dropout) {}
};

}  // namespace posenc
