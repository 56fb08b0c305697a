#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/embed.h"
#include "posenc/functional/embed.h"

namespace posenc::functional {

/// What embed_fused() hands to the kernels.
struct EmbedPlan {
  kernels::embed::Type type;
  kernels::embed::Gather gather;           // all but its output and its mask
  at::Tensor ids_copy, position_ids_copy;  // contiguous int32 or int64, where theirs are not
  int64_t padding = -1;
  bool is_recorded = false;  // by autograd
  bool drops = false;        // dropout, while training
};

/// Whether embed_fused() can compute what embed() documents: in one pass on the CPU, with the bits
/// of embed_composed(). If so, fills `plan`; if not, embed_composed() does it, or says what is
/// wrong. Nothing is drawn or written. An undefined `table`: no positions are added.
/// Reads every id and position once, to check its range: the kernels rely on it.
///
/// This is where a CUDA kernel will be asked for: by device, first of all.
bool is_fusable(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                const EmbedFuncOptions& options, EmbedPlan& plan);

}  // namespace posenc::functional
