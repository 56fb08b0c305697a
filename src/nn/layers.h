#pragma once

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include "posenc/core/embedding_init.h"

namespace posenc {

/// Makes a torch::nn::Linear, with uninitialised weights inside a SkipInit.
torch::nn::Linear make_linear(const torch::nn::LinearOptions& options);

/// Makes a torch::nn::Embedding with `options._weight()`, or with a weight that is drawn, by
/// default as torch::nn::Embedding draws it. The memory of a drawn weight is advised to use huge
/// pages, so that look-ups in random order miss the TLB less often.
torch::nn::Embedding make_embedding(torch::nn::EmbeddingOptions options,
                                    EmbeddingInit init = EmbeddingInit::StandardNormal);

/// Draws the weight anew, as make_embedding() does.
void reset_embedding(torch::nn::EmbeddingImpl& embedding, EmbeddingInit init);

/// Throws c10::ValueError for the torch::nn::Embedding options that this library does not support:
/// max_norm, which modifies the weight in the forward, and scale_grad_by_freq.
void check_token_options(const char* module, const torch::nn::EmbeddingOptions& options);

}  // namespace posenc
