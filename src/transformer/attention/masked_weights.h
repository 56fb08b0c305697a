#pragma once

#include "posenc/positions/relative/scores.h"
#include "posenc/transformer/functional/attention_mask.h"

namespace posenc {

/// softmax(scale (q k^T + term)) of heads of queries and keys (B, H, L, Dh) of one sequence, with a
/// mask. A query that may not attend to any key attends to all tokens of its sequence alike, which
/// are those of AttentionMask::padding_keys(); one that is padding, to all keys.
at::Tensor masked_weights(const at::Tensor& q, const at::Tensor& k, const relative::Term& term,
                          double scale, const AttentionMask& mask);

}  // namespace posenc
