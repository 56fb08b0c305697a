// What cases give to a module and to its frozen model.
#pragma once

#include <torch/nn/module.h>

#include "differential/drawn.h"
#include "posenc/transformer/functional/attention_mask.h"

namespace posenc::differential {

/// How far the results of a frozen model may be off, of the largest.
constexpr double kFrozenTolerance = 1e-3;

/// Draws norms and biases, and sets the module to eval mode.
void randomise(torch::nn::Module& module);

/// Integers (batch, length): 1 for tokens; each row has one.
at::Tensor any_tokens(Drawn& drawn, int64_t batch, int64_t length);

/// A mask of several parts, or none; `tokens` may be undefined.
AttentionMask any_mask(Drawn& drawn, int64_t batch, int64_t heads, int64_t queries, int64_t keys,
                       const at::Tensor& tokens);

/// x with zeros for the rows of masked keys, which are zero in one and computed in the other.
at::Tensor of_tokens(const at::Tensor& x, const AttentionMask& mask, bool batch_first);

/// A stack or an encoder of any kind of layers, with padding that is dropped or computed.
void padding_case(Drawn& drawn);

}  // namespace posenc::differential
