#pragma once

#include "posenc/functional/attention_mask.h"
#include "posenc/relative/scores.h"

namespace posenc {

/// softmax(scale (q k^T + term)) of heads of queries (B, H, L, Dh) and keys (B, H, S, Dh), with a
/// mask: the scores of keys that a query may not attend to become the lowest number, so that a
/// query that may not attend to any attends to all alike.
at::Tensor masked_weights(const at::Tensor& q, const at::Tensor& k, const relative::Term& term,
                          double scale, const AttentionMask& mask);

}  // namespace posenc
