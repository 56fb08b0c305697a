#include "posenc/models/attention_pooling.h"

#include <torch/nn/init.h>

#include <ostream>

#include "core/print_fields.h"
#include "positions/nn/weights.h"
#include "transformer/layers/blocks.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {
namespace {

TransformerLayerOptions feed_forward_options(const AttentionPoolingOptions& options) {
  return TransformerLayerOptions(options.d_model(), options.num_heads())
      .d_ff(options.d_ff())
      .dropout(0.0)
      .activation(options.activation())
      .layer_norm_eps(options.layer_norm_eps());
}

}  // namespace

AttentionPoolingImpl::AttentionPoolingImpl(AttentionPoolingOptions options_) : options(options_) {
  AttentionPoolingImpl::reset();
}

void AttentionPoolingImpl::reset() {
  const TransformerLayerOptions own = feed_forward_options(options);
  check_layer("AttentionPooling", own);
  probe = register_parameter("probe", torch::randn({1, 1, options.d_model()}));
  attention = register_module("attention", make_self_attention(own));
  layernorm = register_module(
      "layernorm", LayerNorm(LayerNormOptions(options.d_model()).eps(options.layer_norm_eps())));
  linear1 = register_module("linear1", make_linear1(own));
  linear2 = register_module("linear2", make_linear2(own));
}

void AttentionPoolingImpl::reset_parameters() {
  torch::nn::init::normal_(probe);
  attention->reset_parameters();
  layernorm->reset_parameters();
  linear1->reset_parameters();
  linear2->reset_parameters();
}

void AttentionPoolingImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "AttentionPooling", options, AttentionPoolingOptions(-1, -1));
}

torch::Tensor AttentionPoolingImpl::forward(const torch::Tensor& x) {
  TORCH_CHECK_VALUE(x.dim() == 3 && x.size(2) == options.d_model(),
                    "[AttentionPooling] x must be (B, L, ", options.d_model(), "). Got ",
                    x.sizes());
  const torch::Tensor query = probe.expand({x.size(0), 1, options.d_model()});
  const torch::Tensor y = attention->forward(query, x, x);
  torch::nn::DropoutImpl none(0.0);
  const TransformerLayerOptions own = feed_forward_options(options);
  const blocks::Network network = {linear1.get(), &none, linear2.get(), &own};
  return (y + blocks::run(network, layernorm->forward(y))).select(1, 0);
}

}  // namespace posenc
