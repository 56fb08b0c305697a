#include "posenc/nn/attention/multihead_attention.h"

#include <torch/nn/init.h>

#include <ostream>

#include "core/check.h"
#include "nn/make_linear.h"
#include "posenc/core/skip_init.h"

namespace posenc {

MultiheadAttentionImpl::MultiheadAttentionImpl(MultiheadAttentionOptions options_)
    : options(options_) {
  MultiheadAttentionImpl::reset();
}

void MultiheadAttentionImpl::reset() {
  const int64_t width = options.embed_dim();
  check_positive("MultiheadAttention", "embed_dim", width);
  check_positive("MultiheadAttention", "num_heads", options.num_heads());
  check_dropout("MultiheadAttention", options.dropout());
  TORCH_CHECK_VALUE(width % options.num_heads() == 0,
                    "[MultiheadAttention] num_heads must divide embed_dim ", width, ". Got ",
                    options.num_heads());
  const int64_t kdim = options.kdim().value_or(width), vdim = options.vdim().value_or(width);
  check_positive("MultiheadAttention", "kdim", kdim);
  check_positive("MultiheadAttention", "vdim", vdim);
  if (kdim == width && vdim == width) {
    in_proj_weight = register_parameter("in_proj_weight", torch::empty({3 * width, width}));
  } else {
    q_proj_weight = register_parameter("q_proj_weight", torch::empty({width, width}));
    k_proj_weight = register_parameter("k_proj_weight", torch::empty({width, kdim}));
    v_proj_weight = register_parameter("v_proj_weight", torch::empty({width, vdim}));
  }
  if (options.bias()) {
    in_proj_bias = register_parameter("in_proj_bias", torch::empty({3 * width}));
  }
  out_proj = register_module(
      "out_proj", make_linear(torch::nn::LinearOptions(width, width).bias(options.bias())));
  if (!SkipInit::is_active()) reset_in_projection();
}

void MultiheadAttentionImpl::reset_parameters() {
  out_proj->reset_parameters();  // drawn first, as by PyTorch's constructor
  reset_in_projection();
}

void MultiheadAttentionImpl::reset_in_projection() {
  for (auto* weight : {&in_proj_weight, &q_proj_weight, &k_proj_weight, &v_proj_weight}) {
    if (weight->defined()) torch::nn::init::xavier_uniform_(*weight);
  }
  if (!options.bias()) return;
  torch::nn::init::zeros_(in_proj_bias);
  torch::nn::init::zeros_(out_proj->bias);
}

void MultiheadAttentionImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::MultiheadAttention(embed_dim=" << options.embed_dim()
         << ", num_heads=" << options.num_heads();
  if (options.dropout() > 0.0) stream << ", dropout=" << options.dropout();
  if (!options.bias()) stream << ", bias=false";
  if (options.kdim()) stream << ", kdim=" << *options.kdim();
  if (options.vdim()) stream << ", vdim=" << *options.vdim();
  if (!options.batch_first()) stream << ", batch_first=false";
  if (options.python_dropout_order()) stream << ", python_dropout_order=true";
  stream << ")";
}

torch::Tensor MultiheadAttentionImpl::forward(const torch::Tensor& query, const torch::Tensor& key,
                                              const torch::Tensor& value,
                                              const AttentionMask& mask) {
  if (options.batch_first()) return attend_heads(split_heads(query, key, value), mask);
  TORCH_CHECK_VALUE(query.dim() == 3 && key.dim() == 3 && value.dim() == 3,
                    "[MultiheadAttention] query, key and value must be (L, B, E). Got ",
                    query.sizes(), ", ", key.sizes(), " and ", value.sizes());
  // If all three are the same tensor, keep them so: they are then projected in one multiplication.
  const auto q = query.transpose(0, 1);
  const auto k = key.is_same(query) ? q : key.transpose(0, 1);
  const auto v = value.is_same(key) ? k : value.transpose(0, 1);
  return attend_heads(split_heads(q, k, v), mask).transpose(0, 1);
}

functional::Heads MultiheadAttentionImpl::split_heads(const torch::Tensor& query,
                                                      const torch::Tensor& key,
                                                      const torch::Tensor& value) const {
  return functional::split_heads(query, key, value, weights(), options.num_heads());
}

torch::Tensor MultiheadAttentionImpl::attend_heads(const functional::Heads& heads,
                                                   const AttentionMask& mask) const {
  return functional::attend_heads(heads, weights(),
                                  functional::MultiheadAttentionFuncOptions(options.num_heads())
                                      .mask(mask)
                                      .dropout(options.dropout())
                                      .training(is_training())
                                      .python_dropout_order(options.python_dropout_order()));
}

functional::MultiheadAttentionWeights MultiheadAttentionImpl::weights() const {
  return {in_proj_weight, q_proj_weight,    k_proj_weight, v_proj_weight,
          in_proj_bias,   out_proj->weight, out_proj->bias};
}

}  // namespace posenc
