#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <string>
#include <vector>

#include "posenc/core/fields.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// Matrix-multiply backend of a frozen model.
enum class GemmBackend {
  /// The faster of the other two for each weight. freeze() measures both on a slice of the weight
  /// with one, a few and many rows, so freezing the same model again may give different bits.
  Autotune,
  Native,  ///< posenc's kernels: deterministic, and independent of the number of threads
  ATen,    ///< at::linear
};

/// How a frozen model holds the weights of its linear layers and its tables of tokens. All other
/// weights (norms, biases, positions, and the heads of classifiers unless tied) are float32.
enum class WeightDtype {
  Float32,  ///< shared with the source
  /// Copied in 8 bits, a quarter of the memory, and multiplied by inputs in 8 bits with exact sums.
  /// Each row of a weight, and of an input, has its own scale, and that of an input its own zero;
  /// with int8_block each block of a row.
  /// So the result of a row does not depend on the rest of the batch. A row that is not finite
  /// gives NaN, and no other row does. docs/int8.md states the arithmetic, which gives the same
  /// bits on every processor and for any number of threads. Scores of attention are computed in 8
  /// bits, too, unless FreezeOptions::int8_scores() is false.
  Int8,
  /// Copied and rounded to bfloat16, to nearest even: half of the memory. Inputs and arithmetic are
  /// float32. The results have the bits of a float32 model with the rounded weights and
  /// GemmBackend::Native.
  BFloat16,
};

/// What a frozen model multiplies in. Norms, softmax, activations, biases and all sums are float32.
enum class ComputeDtype {
  Float32,
  /// The products of linear layers, of queries and keys, and of attention weights and values have
  /// operands rounded to bfloat16, and sums in float32, by the processor's own instruction where it
  /// is AVX512-BF16, and otherwise in float32 with the same bits. docs/bfloat16.md states the
  /// arithmetic. With WeightDtype::Float32 the weights of linear layers are copied in bfloat16, and
  /// tables stay float32; with BFloat16 tables are in bfloat16 too; with Int8 linear layers
  /// multiply in 8 bits, and attention in bfloat16. Weights in weights_to_not_convert are
  /// multiplied in float32. In generate(), what a new token attends to is float32.
  BFloat16,
};

/// Options of freeze().
struct FreezeOptions {
  /// The matrix-multiply backend of float32 weights; converted ones have kernels of their own.
  TORCH_ARG(GemmBackend, gemm) = GemmBackend::Native;
  /// The dtype of the weights.
  TORCH_ARG(WeightDtype, weights) = WeightDtype::Float32;
  /// With WeightDtype::Int8, how many elements of a row of a weight, and of an input, have a scale
  /// of their own, and those of an input a zero: 64 or 128; or 0, for a scale a row. With blocks
  /// the results are nearer to those of float32, of rows with outliers above all, and cost time and
  /// memory, which docs/int8.md has measured.
  TORCH_ARG(int64_t, int8_block) = 0;
  /// The dtype of the products.
  TORCH_ARG(ComputeDtype, compute) = ComputeDtype::Float32;
  /// Whether a model with WeightDtype::Int8 that computes in float32 multiplies the queries and
  /// keys of attention in 8 bits, too: of sequences with enough keys, and not of the new tokens of
  /// generate(). Softmax and the products with values stay in float32, as all attention does with
  /// false. docs/int8.md states the arithmetic, and from how many keys on. Without such weights,
  /// and with ComputeDtype::BFloat16, it changes nothing.
  TORCH_ARG(bool, int8_scores) = true;
  /// Weights that stay in float32, by their names in the state_dict; in a name an asterisk matches
  /// any sequence of characters, as in "decoder.layers.5.*". A tied weight has the name under which
  /// it is registered.
  TORCH_ARG(std::vector<std::string>, weights_to_not_convert) = {};
  /// The most threads of a call, which never has more than at::get_num_threads() gives where it is
  /// made; 0: these. Small calls use one, and so do calls while other programs keep the other
  /// processors busy. With GemmBackend::Native the number of threads changes no bit.
  TORCH_ARG(int64_t, threads) = 0;

  POSENC_FIELDS(FreezeOptions, gemm_, weights_, int8_block_, compute_, int8_scores_,
                weights_to_not_convert_, threads_);
};

/// The size in bytes of the weights that a frozen model keeps alive.
struct FrozenBytes {
  int64_t shared;  ///< weights that the source's tensors also hold, while these exist
  int64_t own;     ///< weights that only the frozen model holds
};

}  // namespace posenc
