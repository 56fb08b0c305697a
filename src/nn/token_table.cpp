#include "nn/token_table.h"

#include <torch/nn/init.h>

#include <cmath>

#include "functional/lookup.h"
#include "nn/draw_shard.h"
#include "posenc/core/skip_init.h"
#include "torch_internals/fresh_memory.h"

namespace posenc {

torch::nn::Embedding make_embedding(torch::nn::EmbeddingOptions options) {
  const bool fresh = !options._weight().defined();
  if (fresh) {
    options._weight(
        torch_internals::fresh_output({options.num_embeddings(), options.embedding_dim()},
                                      c10::get_default_dtype_as_scalartype()));
  }
  torch::nn::Embedding made(options);
  made->options._weight(torch::Tensor());  // otherwise all clones would share this tensor
  if (fresh && !SkipInit::is_active()) made->reset_parameters();
  return made;
}

torch::nn::Embedding make_embedding(torch::nn::EmbeddingOptions options, const VocabShard& shard,
                                    EmbeddingInit init) {
  if (shard.rows() < shard.vocab) {
    const int64_t padding = functional::padding_row("TokenEmbedding", "padding_idx",
                                                    options.padding_idx(), shard.vocab);
    const bool is_own = padding >= shard.first && padding < shard.last;
    options.num_embeddings(shard.rows())
        .padding_idx(is_own ? std::optional<int64_t>(padding - shard.first) : std::nullopt);
  }
  const bool fresh = !options._weight().defined();
  torch::nn::Embedding made{nullptr};
  {
    const SkipInit draw_below;
    made = make_embedding(options);
  }
  if (fresh && !SkipInit::is_active()) reset_embedding(*made, shard, init);
  return made;
}

void reset_embedding(torch::nn::EmbeddingImpl& embedding, const VocabShard& shard,
                     EmbeddingInit init) {
  const auto width = static_cast<double>(embedding.options.embedding_dim());
  const double deviation = init == EmbeddingInit::InverseSqrtDim ? std::pow(width, -0.5) : 1.0;
  draw_shard(embedding.weight, shard, [deviation](const torch::Tensor& block) {
    torch::nn::init::normal_(block, 0.0, deviation);
  });
  if (const auto& padding = embedding.options.padding_idx()) {
    const torch::NoGradGuard no_grad;
    embedding.weight[*padding].zero_();
  }
}

void check_token_options(const char* module, const torch::nn::EmbeddingOptions& options) {
  TORCH_CHECK_VALUE(!options.max_norm().has_value(), "[", module,
                    "] max_norm is not supported: renormalise the weight between steps. Got ",
                    *options.max_norm());
  TORCH_CHECK_VALUE(!options.scale_grad_by_freq(), "[", module,
                    "] scale_grad_by_freq is not supported. Got true");
}

}  // namespace posenc
