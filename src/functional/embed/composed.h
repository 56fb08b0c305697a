#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/functional/embed.h"

namespace posenc::functional {

/// Defines embed() as ATen operations, one after another: look-up, scale, position, dropout. Used
/// wherever is_fusable() returns false: CUDA, tracing, subclasses, transforms. With an undefined
/// table, no positions are added. Checks everything that embed() documents.
at::Tensor embed_composed(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                          const EmbedFuncOptions& options);

}  // namespace posenc::functional
