#include "nn/layers.h"

#include <torch/nn/init.h>

#include <cmath>

#include "posenc/core/skip_init.h"
#include "torch_internals/fresh_memory.h"

namespace posenc {

torch::nn::Linear make_linear(const torch::nn::LinearOptions& options) {
  if (!SkipInit::is_active()) return torch::nn::Linear(options);
  // Its constructor always draws weights, so construct an empty layer and allocate afterwards.
  torch::nn::Linear linear(torch::nn::LinearOptions(1, 0).bias(options.bias()));
  linear->options = options;
  linear->weight.set_data(torch::empty({options.out_features(), options.in_features()}));
  if (options.bias()) linear->bias.set_data(torch::empty({options.out_features()}));
  return linear;
}

torch::nn::Embedding make_embedding(torch::nn::EmbeddingOptions options, EmbeddingInit init) {
  const bool fresh = !options._weight().defined();
  if (fresh) {
    options._weight(
        torch_internals::fresh_output({options.num_embeddings(), options.embedding_dim()},
                                      c10::get_default_dtype_as_scalartype()));
  }
  torch::nn::Embedding made(options);
  made->options._weight(torch::Tensor());  // otherwise all clones would share this tensor
  if (fresh && !SkipInit::is_active()) reset_embedding(*made, init);
  return made;
}

void reset_embedding(torch::nn::EmbeddingImpl& embedding, EmbeddingInit init) {
  const auto width = static_cast<double>(embedding.options.embedding_dim());
  const double deviation = init == EmbeddingInit::InverseSqrtDim ? std::pow(width, -0.5) : 1.0;
  torch::nn::init::normal_(embedding.weight, 0.0, deviation);
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
