#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include "posenc/positions/embedding_init.h"

namespace posenc {

/// An uninitialised weight of the default dtype. The memory of a large one is advised to use huge
/// pages: a product with few rows reads it at the speed of memory, and look-ups in random order
/// miss the TLB less often.
torch::Tensor new_weight(at::IntArrayRef sizes);

/// Makes a torch::nn::Linear, with a new_weight() inside a SkipInit.
torch::nn::Linear make_linear(const torch::nn::LinearOptions& options);

/// Makes a torch::nn::Embedding with `options._weight()`, or with a new_weight() that is drawn, by
/// default as torch::nn::Embedding draws it.
torch::nn::Embedding make_embedding(torch::nn::EmbeddingOptions options,
                                    EmbeddingInit init = EmbeddingInit::StandardNormal);

/// Draws the weight anew, as make_embedding() does.
void reset_embedding(torch::nn::EmbeddingImpl& embedding, EmbeddingInit init);

/// Throws c10::ValueError for the torch::nn::Embedding options that this library does not support:
/// max_norm, which modifies the weight in the forward, and scale_grad_by_freq.
void check_token_options(const char* module, const torch::nn::EmbeddingOptions& options);

/// Draws a weight as torch.nn.init.trunc_normal_(weight, std=deviation) does, which cuts at -2 and
/// 2. Half types are drawn in float32.
void truncated_normal_(at::Tensor& weight, double deviation);

/// Sets a weight to zeros.
void zero_weights_(at::Tensor& weight);

}  // namespace posenc
