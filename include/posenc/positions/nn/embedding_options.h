#pragma once

#include <cstdint>
#include <optional>

#include "posenc/core/base_arg.h"
#include "posenc/export.h"
#include "posenc/positions/embedding_init.h"
#include "posenc/positions/scale.h"
#include "posenc/positions/sinusoid/options.h"

namespace posenc POSENC_EXPORT {

/// Where a module takes its sinusoidal rows from.
enum class TableSource {
  Buffer,    ///< a buffer of max_len rows in PyTorch's state_dict
  Factored,  ///< two small tables: exact, for positions below 2^31, not in the state_dict
  OnTheFly,  ///< computed from the recipe in each forward, up to position 2^31
};

/// Base class of the options of modules that add sinusoidal positions.
template <typename Derived>
class PositionOptions {
 public:
  /// The default options for this length.
  explicit PositionOptions(int64_t max_len) : max_len_(max_len) {}

  /// Number of positions in the table. With TableSource::Factored, positions from max_len on are
  /// computed on demand.
  POSENC_BASE_ARG(int64_t, max_len);
  /// Where the rows of positions are taken from.
  POSENC_BASE_ARG(TableSource, table_source) = TableSource::Buffer;
  /// Probability of zeroing an element of the sum in training, in [0, 1).
  POSENC_BASE_ARG(double, dropout) = 0.0;
  /// Whether sequences are (B, L), or (B, L, D); false: (L, B).
  POSENC_BASE_ARG(bool, batch_first) = true;
  /// Extends the table, keeping device and dtype, instead of throwing for a position past its end.
  /// A table that requires a gradient does not grow.
  POSENC_BASE_ARG(bool, grow) = false;
};

/// Base class of the options of modules that embed tokens.
template <typename Derived>
class TokenOptions {
 public:
  /// The default options for these sizes.
  TokenOptions(int64_t vocab_size, int64_t d_model) : vocab_size_(vocab_size), d_model_(d_model) {}

  /// Number of tokens in the vocabulary.
  POSENC_BASE_ARG(int64_t, vocab_size);
  /// Width of the embeddings.
  POSENC_BASE_ARG(int64_t, d_model);
  /// Factor of the token vectors, before positions are added.
  POSENC_BASE_ARG(Scale, scale) = Scale::None;
  /// How the token table is initialised; InverseSqrtDim for a model that is trained from scratch
  /// with Scale::SqrtDim or with an output layer tied to the table.
  POSENC_BASE_ARG(EmbeddingInit, embedding_init) = EmbeddingInit::StandardNormal;
  /// A row of the token table that is initialised to zeros and gets no gradient; a negative index
  /// counts from the end.
  POSENC_BASE_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  /// Makes the gradient of the token table sparse, as in nn.Embedding, and coalesced.
  POSENC_BASE_ARG(bool, sparse) = false;
};

/// Base class of the options of modules that embed tokens and add sinusoidal positions.
template <typename Derived>
class TokenAndPositionOptions : public TokenOptions<Derived>, public PositionOptions<Derived> {
 public:
  /// The default options for these sizes.
  TokenAndPositionOptions(int64_t vocab_size, int64_t d_model, int64_t max_len)
      : TokenOptions<Derived>(vocab_size, d_model), PositionOptions<Derived>(max_len) {}

  /// The sinusoid; by default the paper's. Its dim must be d_model.
  POSENC_BASE_ARG(std::optional<SinusoidOptions>, sinusoid) = std::nullopt;
  /// Lets a forward that records no gradient reuse the memory of the last output, once no one else
  /// holds that output.
  POSENC_BASE_ARG(bool, reuse_output) = false;
};

}  // namespace posenc
