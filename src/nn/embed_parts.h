#pragma once

#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>

#include <optional>

#include "posenc/core/last_output.h"
#include "posenc/core/scale.h"
#include "posenc/nn/positional_encoding.h"

namespace posenc {

/// The parts of a module that embeds tokens and adds positions.
struct EmbedParts {
  const char* module;
  torch::nn::EmbeddingImpl& tokens;
  const Scale& scale;
  const std::optional<int64_t>& padding_idx;
  PositionalEncodingImpl& position;
  torch::nn::DropoutImpl& dropout;
  LastOutput* reuse;  ///< or null
};

/// functional::embed() on them in one pass, or an undefined tensor where the module has to call its
/// parts one after another; both give the same bits.
torch::Tensor embed_parts(const EmbedParts& parts, const torch::Tensor& ids, int64_t offset,
                          const torch::Tensor& position_ids);

/// A torch::nn::Embedding with `options._weight()`, or with a weight drawn as it draws one, in
/// memory with the advice on huge pages: rows in random order then miss the TLB less often.
torch::nn::Embedding make_embedding(torch::nn::EmbeddingOptions options);

/// Throws c10::ValueError for what torch::nn::Embedding has and this library does not: max_norm,
/// which changes the weight in a forward, and scale_grad_by_freq.
void check_token_options(const char* module, const torch::nn::EmbeddingOptions& options);

}  // namespace posenc
