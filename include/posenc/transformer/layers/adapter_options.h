#pragma once

#include <torch/arg.h>

#include <cstdint>

#include "posenc/core/fields.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// The norm at the beginning of an adapter.
enum class AdapterNorm {
  None,    ///< none
  Own,     ///< one of its own, adapter_norm
  Shared,  ///< norm2 once more
};

/// The adapter of a TransformerEncoderLayer, a block after its feed-forward network: with y =
/// norm(x), x = y + adapter2(activation(adapter1(y))), or x + ... without norm_before_residual.
struct AdapterOptions {
  /// An adapter of this width, with the options of X-MOD.
  explicit AdapterOptions(int64_t width) : width_(width) {}

  /// Width between its two linear layers.
  TORCH_ARG(int64_t, width);
  /// The norm of its input.
  TORCH_ARG(AdapterNorm, norm) = AdapterNorm::Shared;
  /// Whether its result is added to the normalised input, and not to the input itself.
  TORCH_ARG(bool, norm_before_residual) = true;

  POSENC_FIELDS(AdapterOptions, width_, norm_, norm_before_residual_);
};

}  // namespace posenc
