#include "posenc/transformer/attention/convolutional_attention.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv1d.h>
#include <torch/nn/init.h>

#include <cmath>
#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "posenc/core/skip_init.h"
#include "posenc/transformer/functional/multihead_attention.h"
#include "positions/nn/weights.h"

namespace posenc {
namespace {

constexpr const char* kConvolutional = "ConvolutionalAttention";

// Of the attention, and of the convolution.
int64_t half_width(const ConvolutionalAttentionOptions& options) { return options.embed_dim() / 2; }

// The attention with its half of the output projection's columns.
functional::MultiheadAttentionWeights half_weights(const ConvolutionalAttentionImpl& module) {
  functional::MultiheadAttentionWeights weights;
  weights.in_proj_weight = module.in_proj_weight;
  weights.in_proj_bias = module.in_proj_bias;
  weights.out_proj_weight = module.out_proj.ptr()->weight.narrow(1, 0, half_width(module.options));
  weights.out_proj_bias = module.out_proj.ptr()->bias;
  return weights;
}

}  // namespace

ConvolutionalAttentionImpl::ConvolutionalAttentionImpl(ConvolutionalAttentionOptions options_)
    : options(options_) {
  ConvolutionalAttentionImpl::reset();
}

void ConvolutionalAttentionImpl::reset() {
  const int64_t embed_dim = options.embed_dim(), heads = options.num_heads();
  const int64_t kernel_size = options.conv_kernel_size();
  check_positive(kConvolutional, "embed_dim", embed_dim);
  check_positive(kConvolutional, "num_heads", heads);
  check_dropout(kConvolutional, options.dropout());
  TORCH_CHECK_VALUE(embed_dim % (2 * heads) == 0, "[", kConvolutional,
                    "] embed_dim must be a multiple of twice num_heads ", heads, ". Got ",
                    embed_dim);
  TORCH_CHECK_VALUE(kernel_size > 0 && kernel_size % 2 == 1, "[", kConvolutional,
                    "] conv_kernel_size must be odd and positive. Got ", kernel_size);
  const int64_t width = half_width(options);
  const auto linear = [](int64_t in, int64_t out) {
    return make_linear(torch::nn::LinearOptions(in, out));
  };
  in_proj_weight = register_parameter("in_proj_weight", torch::empty({3 * width, embed_dim}));
  in_proj_bias = register_parameter("in_proj_bias", torch::empty({3 * width}));
  depthwise_weight = register_parameter("depthwise_weight", torch::empty({embed_dim, kernel_size}));
  pointwise = register_module("pointwise", linear(embed_dim, width));
  kernel = register_module("kernel", linear(width, heads * kernel_size));
  conv_out = register_module("conv_out", linear(embed_dim, width));
  out_proj = register_module("out_proj", linear(embed_dim, embed_dim));
  if (!SkipInit::is_active()) reset_parameters();
}

void ConvolutionalAttentionImpl::reset_parameters() {
  torch::nn::init::xavier_uniform_(in_proj_weight);
  torch::nn::init::zeros_(in_proj_bias);
  const double bound = 1.0 / std::sqrt(static_cast<double>(options.conv_kernel_size()));
  torch::nn::init::uniform_(depthwise_weight, -bound, bound);
  for (auto* one : {&pointwise, &kernel, &conv_out, &out_proj}) (*one)->reset_parameters();
}

void ConvolutionalAttentionImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "ConvolutionalAttention", options,
                       ConvolutionalAttentionOptions(-1, -1));
}

// The convolution (B, L, W), before the output projection.
torch::Tensor ConvolutionalAttentionImpl::convolution(const torch::Tensor& x,
                                                      const torch::Tensor& query) const {
  const int64_t heads = options.num_heads(), size = options.conv_kernel_size(), reach = size / 2;
  const torch::Tensor separable =
      at::conv1d(x.transpose(1, 2), depthwise_weight.unsqueeze(1), {}, /*stride=*/1, reach,
                 /*dilation=*/1, /*groups=*/x.size(2));
  const torch::Tensor gated =
      pointwise.ptr()->forward(separable.transpose(1, 2)) * query.transpose(1, 2).flatten(2);
  const torch::Tensor weights =
      kernel.ptr()->forward(gated).unflatten(-1, {heads, size}).softmax(-1);  // (B, L, H, K)
  const torch::Tensor rows = at::constant_pad_nd(conv_out.ptr()->forward(x), {0, 0, reach, reach})
                                 .unfold(1, size, 1)
                                 .unflatten(2, {heads, -1});  // (B, L, H, Dh, K)
  return rows.matmul(weights.unsqueeze(-1)).squeeze(-1).flatten(2);
}

torch::Tensor ConvolutionalAttentionImpl::forward(const torch::Tensor& x,
                                                  const AttentionMask& mask) {
  return run(x, mask, nullptr);
}

std::tuple<torch::Tensor, torch::Tensor> ConvolutionalAttentionImpl::forward_with_weights(
    const torch::Tensor& x, const AttentionMask& mask) {
  torch::Tensor weights;
  const torch::Tensor out = run(x, mask, &weights);
  return {out, weights};
}

torch::Tensor ConvolutionalAttentionImpl::run(const torch::Tensor& x, const AttentionMask& mask,
                                              torch::Tensor* shares) {
  TORCH_CHECK_VALUE(x.dim() == 3 && x.size(2) == options.embed_dim(), "[", kConvolutional,
                    "] x must be (B, L, ", options.embed_dim(), "). Got ", x.sizes());
  const auto weights = half_weights(*this);
  const functional::Heads heads = functional::split_heads(x, x, x, weights, options.num_heads());
  const auto own = functional::MultiheadAttentionFuncOptions(options.num_heads())
                       .mask(mask)
                       .dropout(options.dropout())
                       .training(is_training());
  torch::Tensor out;
  if (shares == nullptr) {
    out = functional::attend_heads(heads, weights, own);
  } else {
    std::tie(out, *shares) =
        functional::attend_heads_with_weights(heads, weights, own, /*average_attn_weights=*/false);
  }
  if (x.size(1) == 0) return out;
  const int64_t width = half_width(options);
  return out + torch::linear(convolution(x, heads.query), out_proj->weight.narrow(1, width, width));
}

}  // namespace posenc
