#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/functional/embed.h"

namespace posenc::functional {

/// embed() in one pass on the CPU, its backward included; an undefined tensor where that is not
/// possible, and embed_composed() has to run, or to say what is wrong. Nothing is read, drawn or
/// written then. An undefined table: no positions are added. A defined `out` is contiguous, of the
/// right shape and type, apart from what is read, and is returned.
///
/// This is where a CUDA kernel will go: by device, before the plan is made.
at::Tensor embed_fused(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                       const EmbedFuncOptions& options, const at::Tensor& out = {});

}  // namespace posenc::functional
