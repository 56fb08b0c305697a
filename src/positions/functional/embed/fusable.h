#pragma once

#include <ATen/core/Tensor.h>

#include <forward_list>

#include "kernels/embed.h"
#include "posenc/positions/functional/embed.h"
#include "posenc/positions/functional/encoder_embeddings.h"

namespace posenc::functional {

/// Which rows of a table are read: those of given ids, consecutive ones, or row 0 for all tokens.
enum class RowsRead { Given, Consecutive, First };

/// A table of which an embedding reads a row for each token. Pointers are to the caller's tensors.
struct EmbedTable {
  const at::Tensor* weight;
  RowsRead rows;
  const at::Tensor* ids;  // contiguous int32 or int64, maybe a copy; null unless rows are given
  int64_t padding;
  // All sequences of a batch read the same rows: autograd sums the gradient over the batch first.
  bool repeats;
  bool records;  // autograd records the look-up
};

/// The arguments that embed_fused() passes to the kernels.
struct EmbedPlan {
  kernels::embed::Type type;
  kernels::embed::EmbedRequest request;  // all but its outputs and its mask
  kernels::embed::NormRounding rounding = kernels::embed::NormRounding::Separate;
  EmbedTable tokens;
  EmbedTable added[kernels::embed::kEmbeddingsTables];  // as request.added, as many
  std::forward_list<at::Tensor> copies;                 // of ids that the kernels cannot read
  const at::Tensor* norm_weight = nullptr;              // of the caller
  const at::Tensor* norm_bias = nullptr;                // of the caller, may be undefined
  bool sparse = false;                                  // the gradient of the tokens
  bool records_tables = false;                          // autograd records a look-up,
  bool records_norm = false;                            // and the norm
  bool drops = false;                                   // dropout while training

  /// The type in which the sum is rounded and dropout draws.
  at::ScalarType sum_type() const;
};

/// Whether embed_fused() can compute embed() for these arguments: in one pass on the CPU, with the
/// same bits as embed_composed(). If so, fills `plan`. If not, embed_composed() computes the result
/// or reports what is wrong. Draws and writes nothing. With an undefined `table`, no positions are
/// added. Range-checks every id and position, which the kernels rely on.
///
/// A CUDA kernel would be selected here, by device, before anything else.
bool is_fusable(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                const EmbedFuncOptions& options, EmbedPlan& plan);

/// The same for encoder_embeddings(), but for a projection at the end, which ATen computes.
bool is_fusable(const at::Tensor& ids, const EncoderEmbeddingsWeights& weights,
                const EncoderEmbeddingsFuncOptions& options, EmbedPlan& plan);

}  // namespace posenc::functional
