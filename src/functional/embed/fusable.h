#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/embed.h"
#include "posenc/functional/embed.h"

namespace posenc::functional {

/// The arguments that embed_fused() passes to the kernels.
struct EmbedPlan {
  kernels::embed::Type type;
  kernels::embed::GatherRequest gather;    // all but its output and its mask
  at::Tensor ids_copy, position_ids_copy;  // contiguous int32 or int64, if the originals are not
  int64_t padding = -1;
  bool is_recorded = false;  // by autograd
  bool drops = false;        // dropout while training
};

/// Whether embed_fused() can compute embed() for these arguments: in one pass on the CPU, with the
/// same bits as embed_composed(). If so, fills `plan`. If not, embed_composed() computes the result
/// or reports what is wrong. Draws and writes nothing. With an undefined `table`, no positions are
/// added. Range-checks every id and position, which the kernels rely on.
///
/// A CUDA kernel would be selected here, by device, before anything else.
bool is_fusable(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                const EmbedFuncOptions& options, EmbedPlan& plan);

}  // namespace posenc::functional
