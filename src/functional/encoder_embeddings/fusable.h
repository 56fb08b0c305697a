#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/encoder_embeddings.h"
#include "posenc/functional/encoder_embeddings.h"

namespace posenc::functional {

/// Which rows of a table are added: the rows of given ids, consecutive rows, or row 0 for all
/// tokens.
enum class EmbeddingsRows { Given, Consecutive, First };

/// A table of which the embeddings add a row for each token.
struct EmbeddingsTable {
  const at::Tensor* weight = nullptr;  // of the caller
  EmbeddingsRows rows = EmbeddingsRows::Given;
  const at::Tensor* ids = nullptr;  // of the caller, if given
  at::Tensor copy;                  // of the ids: contiguous int32 or int64, if they are not
  int64_t padding = -1;
  // All sequences of a batch have the same rows: autograd sums the gradient over the batch first.
  bool repeats = false;

  const at::Tensor* readable_ids() const { return copy.defined() ? &copy : ids; }
};

/// The arguments that encoder_embeddings_fused() passes to the kernels.
struct EncoderEmbeddingsPlan {
  kernels::embed::EmbeddingsRequest request;  // all but its outputs and its mask
  kernels::embed::NormRounding rounding = kernels::embed::NormRounding::Separate;
  EmbeddingsTable tokens;
  EmbeddingsTable added[kernels::embed::kEmbeddingsTables];  // as request.added
  bool records_tables = false;                               // autograd records the look-ups,
  bool records_norm = false;                                 // and the norm
  bool drops = false;                                        // dropout while training
  bool projects = false;                                     // afterwards
};

/// Whether encoder_embeddings_fused() can compute encoder_embeddings() for these arguments: in one
/// pass on the CPU, with the same bits as encoder_embeddings_composed(). If so, fills `plan`. If
/// not, encoder_embeddings_composed() computes the result or reports what is wrong. Draws and
/// writes nothing. Range-checks every id, position and type, which the kernels rely on.
bool is_fusable(const at::Tensor& ids, const EncoderEmbeddingsWeights& weights,
                const EncoderEmbeddingsFuncOptions& options, EncoderEmbeddingsPlan& plan);

}  // namespace posenc::functional
