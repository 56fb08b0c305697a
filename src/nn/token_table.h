#pragma once

#include <torch/nn/modules/embedding.h>

namespace posenc {

/// A torch::nn::Embedding with `options._weight()`, or with a weight drawn as it draws one, in
/// memory with the advice on huge pages: rows in random order then miss the TLB less often.
torch::nn::Embedding make_embedding(torch::nn::EmbeddingOptions options);

/// Throws c10::ValueError for what torch::nn::Embedding has and this library does not: max_norm,
/// which changes the weight in a forward, and scale_grad_by_freq.
void check_token_options(const char* module, const torch::nn::EmbeddingOptions& options);

}  // namespace posenc
