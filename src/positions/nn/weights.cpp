#include "positions/nn/weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <torch/nn/init.h>

#include <cmath>

#include "core/torch_internals/fresh_memory.h"
#include "core/torch_internals/without_memory.h"
#include "posenc/core/skip_init.h"

namespace posenc {

torch::Tensor new_weight(at::IntArrayRef sizes) {
  if (torch_internals::WithoutMemory::is_active()) return torch::empty(sizes);
  return torch_internals::fresh_output(sizes, c10::get_default_dtype_as_scalartype());
}

torch::nn::Linear make_linear(const torch::nn::LinearOptions& options) {
  if (!SkipInit::is_active()) return torch::nn::Linear(options);
  // Its constructor always draws weights, so construct an empty layer and allocate afterwards.
  torch::nn::Linear linear(torch::nn::LinearOptions(1, 0).bias(options.bias()));
  linear->options = options;
  linear->weight.set_data(new_weight({options.out_features(), options.in_features()}));
  if (options.bias()) linear->bias.set_data(torch::empty({options.out_features()}));
  return linear;
}

torch::nn::Embedding make_embedding(torch::nn::EmbeddingOptions options, EmbeddingInit init) {
  const bool fresh = !options._weight().defined();
  if (fresh) options._weight(new_weight({options.num_embeddings(), options.embedding_dim()}));
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

namespace {

// The distribution function of the standard normal distribution.
double normal_cdf(double x) { return (1.0 + std::erf(x / std::sqrt(2.0))) / 2.0; }

}  // namespace

void truncated_normal_(at::Tensor& weight, double deviation) {
  constexpr double kCut = 2.0;
  const at::NoGradGuard no_grad;
  const bool is_half = weight.scalar_type() == at::kHalf || weight.scalar_type() == at::kBFloat16;
  at::Tensor drawn = is_half ? at::empty_like(weight, at::kFloat) : weight;
  drawn.uniform_(2 * normal_cdf(-kCut / deviation) - 1, 2 * normal_cdf(kCut / deviation) - 1);
  drawn.erfinv_().mul_(deviation * std::sqrt(2.0)).clamp_(-kCut, kCut);
  if (is_half) weight.copy_(drawn);
}

void zero_weights_(at::Tensor& weight) {
  const at::NoGradGuard no_grad;
  weight.zero_();
}

}  // namespace posenc
