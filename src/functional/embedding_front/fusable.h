#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/front.h"
#include "posenc/functional/embedding_front.h"

namespace posenc::functional {

/// Which rows of a table are added: the rows of given ids, consecutive rows, or row 0 for all
/// tokens.
enum class FrontRows { Given, Consecutive, First };

/// A table of which a front adds a row for each token.
struct FrontTable {
  const at::Tensor* weight = nullptr;  // of the caller
  FrontRows rows = FrontRows::Given;
  const at::Tensor* ids = nullptr;  // of the caller, if given
  at::Tensor copy;                  // of the ids: contiguous int32 or int64, if they are not
  int64_t padding = -1;
  // All sequences of a batch have the same rows: autograd sums the gradient over the batch first.
  bool repeats = false;

  const at::Tensor* readable_ids() const { return copy.defined() ? &copy : ids; }
};

/// The arguments that embedding_front_fused() passes to the kernels.
struct EmbeddingFrontPlan {
  kernels::embed::FrontRequest request;  // all but its outputs and its mask
  kernels::embed::NormRounding rounding = kernels::embed::NormRounding::Separate;
  FrontTable tokens;
  FrontTable added[kernels::embed::kFrontTables];  // as request.added
  bool records_tables = false;                     // autograd records the look-ups,
  bool records_norm = false;                       // and the norm
  bool drops = false;                              // dropout while training
  bool projects = false;                           // afterwards
};

/// Whether embedding_front_fused() can compute embedding_front() for these arguments: in one pass
/// on the CPU, with the same bits as embedding_front_composed(). If so, fills `plan`. If not,
/// embedding_front_composed() computes the result or reports what is wrong. Draws and writes
/// nothing. Range-checks every id, position and type, which the kernels rely on.
bool is_fusable(const at::Tensor& ids, const EmbeddingFrontWeights& weights,
                const EmbeddingFrontFuncOptions& options, EmbeddingFrontPlan& plan);

}  // namespace posenc::functional
