#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "posenc/core/scale.h"

namespace posenc::functional {

/// The rows of `weight` that `ids` name, times `scale`: weight[ids] * scale.
///
/// ids: any shape and integer type, in [0, V); weight: (V, D)  ->  (..., D).
/// The row `padding_idx` gets no gradient; `sparse`: the gradient is sparse and coalesced. Throws
/// c10::TypeError for ids of another type, c10::ValueError for a weight that is not a matrix or a
/// padding_idx outside [-V, V), and c10::IndexError that names the id and its place (on a GPU: the
/// device's own assertion).
at::Tensor token_embedding(const at::Tensor& ids, const at::Tensor& weight,
                           const Scale& scale = Scale::None,
                           std::optional<int64_t> padding_idx = std::nullopt, bool sparse = false);

}  // namespace posenc::functional
