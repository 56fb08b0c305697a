#pragma once

#include <optional>

#include "transformer/functional/attention_mask_internals.h"

namespace posenc::functional {

/// softmax(scale q k^T + mask) of heads of queries (B, H, L, Dh) and keys (B, Hkv, S, Dh)  ->
/// (B, H, L, S); zeros where all of a row is masked.
at::Tensor attention_weights(const at::Tensor& query, const at::Tensor& key, const ScoreMask& mask,
                             std::optional<double> scale);

}  // namespace posenc::functional
