#pragma once

#include <torch/arg.h>

#include <cstdint>

#include "posenc/core/fields.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// The convolution of a ConformerEncoderLayer.
struct ConformerOptions {
  /// A convolution that sees `conv_kernel_size` tokens, around each; odd.
  explicit ConformerOptions(int64_t conv_kernel_size) : conv_kernel_size_(conv_kernel_size) {}

  /// The number of tokens that it sees.
  TORCH_ARG(int64_t, conv_kernel_size);
  /// Probability of zeroing an element of what it adds in training, in [0, 1).
  TORCH_ARG(double, conv_dropout) = 0.0;

  POSENC_FIELDS(ConformerOptions, conv_kernel_size_);
  POSENC_TRAINING_FIELDS(conv_dropout_);
};

}  // namespace posenc
