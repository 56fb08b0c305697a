#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <utility>

#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/sinusoid/options.h"

namespace posenc POSENC_EXPORT {

/// The relative positions of Transformer-XL's attention in a stack: the keys of distances are rows
/// of a sinusoid, which each layer projects.
struct TransformerXLOptions {
  /// The row of a query i and a key j is that of position i - j of this sinusoid, of d_model
  /// channels.
  explicit TransformerXLOptions(SinusoidOptions sinusoid) : sinusoid_(std::move(sinusoid)) {}

  /// The sinusoid.
  TORCH_ARG(SinusoidOptions, sinusoid);
  /// Farther keys have the row of this distance; 0: each distance has its own. XLNet's `clamp_len`.
  TORCH_ARG(int64_t, clamp_len) = 0;
  /// Whether the second half of the sequences of a batch, whose number is even then, have the rows
  /// of positions j - i: XLNet's `bi_data`.
  TORCH_ARG(bool, bi_data) = false;
  /// Whether queries may be multiplied by one of two vectors of each head, of keys of the query's
  /// own segment and of others.
  TORCH_ARG(bool, segments) = false;
  /// Whether the stack holds the vector that pretraining with two streams puts in place of words;
  /// forward() does not use it.
  TORCH_ARG(bool, mask_embedding) = false;

  POSENC_FIELDS(TransformerXLOptions, sinusoid_, clamp_len_, bi_data_, segments_, mask_embedding_);
};

}  // namespace posenc
