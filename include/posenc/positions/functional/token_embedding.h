#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "posenc/export.h"
#include "posenc/positions/scale.h"

namespace posenc {
namespace functional POSENC_EXPORT {

/// weight[ids] * scale.
///
/// ids: any shape and integer type, in [0, V); weight: (V, D)  ->  (..., D).
///
/// The row `padding_idx` gets no gradient. With `sparse` the gradient is sparse and coalesced.
///
/// Errors: c10::TypeError for ids that are not integers; c10::ValueError for a weight that is not a
/// matrix and a padding_idx outside [-V, V); c10::IndexError, naming the id and its index, for an
/// id out of range (on a GPU a device assertion).
at::Tensor token_embedding(const at::Tensor& ids, const at::Tensor& weight,
                           const Scale& scale = Scale::None,
                           std::optional<int64_t> padding_idx = std::nullopt, bool sparse = false);

}  // namespace functional
}  // namespace posenc
