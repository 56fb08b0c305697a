#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/functional/embed.h"

namespace posenc::functional {

/// The definition of embed(), as ATen operations: look-up, scale, position, dropout, one after
/// another. It also runs wherever is_fusable() says no: CUDA, tracing, subclasses, transforms.
/// An undefined table: no positions are added. Checks everything that embed() documents.
at::Tensor embed_composed(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                          const EmbedFuncOptions& options);

}  // namespace posenc::functional
