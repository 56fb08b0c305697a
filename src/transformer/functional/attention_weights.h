#pragma once

#include <optional>

#include "transformer/functional/attention_mask_internals.h"

namespace posenc::functional {

/// softmax(scores + mask), where the scores are scale q k^T, or with a softcap softcap *
/// tanh(scale q k^T / softcap), of heads of queries (B, H, L, Dh) and keys (B, Hkv, S, Dh)  ->
/// (B, H, L, S); zeros where all of a row is masked.
at::Tensor attention_weights(const at::Tensor& query, const at::Tensor& key, const ScoreMask& mask,
                             std::optional<double> scale,
                             std::optional<double> softcap = std::nullopt);

}  // namespace posenc::functional
