#include "posenc/nn/transformer/transformer_encoder_layer.h"

#include <ostream>

#include "nn/transformer/layer_parts.h"

namespace posenc {

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options_)
    : options(options_) {
  TransformerEncoderLayerImpl::reset();
}

void TransformerEncoderLayerImpl::reset() {
  check_layer("TransformerEncoderLayer", options);
  const int64_t d_model = options.d_model(), d_ff = options.d_ff();
  self_attn = register_module("self_attn", make_attention(options));
  linear1 = register_module("linear1", make_linear(d_model, d_ff, options));
  dropout = register_module("dropout", torch::nn::Dropout(options.dropout()));
  linear2 = register_module("linear2", make_linear(d_ff, d_model, options));
  norm1 = register_module("norm1", make_norm(options));
  norm2 = register_module("norm2", make_norm(options));
  if (options.layer_scale()) {
    layer_scale1 = register_module("layer_scale1", make_scale(options));
    layer_scale2 = register_module("layer_scale2", make_scale(options));
  }
  dropout1 = register_module("dropout1", torch::nn::Dropout(options.dropout()));
  dropout2 = register_module("dropout2", torch::nn::Dropout(options.dropout()));
}

void TransformerEncoderLayerImpl::reset_parameters() {
  self_attn->reset_parameters();
  for (auto* linear : {&linear1, &linear2}) (*linear)->reset_parameters();
  for (auto* norm : {&norm1, &norm2}) (*norm)->reset_parameters();
  for (auto* scale : {&layer_scale1, &layer_scale2}) {
    if (*scale) (*scale)->reset_parameters();
  }
}

void TransformerEncoderLayerImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::TransformerEncoderLayer(";
  print(stream, options);
  stream << ")";
}

torch::Tensor TransformerEncoderLayerImpl::forward(const torch::Tensor& x,
                                                   const AttentionMask& mask) {
  return run(x, mask, nullptr);
}

std::tuple<torch::Tensor, torch::Tensor> TransformerEncoderLayerImpl::forward_with_weights(
    const torch::Tensor& x, const AttentionMask& mask) {
  torch::Tensor weights;
  const torch::Tensor out = run(x, mask, &weights);
  return {out, weights};
}

// Stores the attention weights unless `weights` is null.
torch::Tensor TransformerEncoderLayerImpl::run(const torch::Tensor& x, const AttentionMask& mask,
                                               torch::Tensor* weights) {
  const bool first = options.norm_first();
  const torch::Tensor attended =
      residual(x, first, norm1, dropout1, layer_scale1,
               [&](const torch::Tensor& y) {
                 if (weights == nullptr) return self_attn->forward(y, y, y, mask);
                 auto [out, shares] = self_attn->forward_with_weights(
                     y, y, y, mask, /*average_attn_weights=*/false);
                 *weights = shares;
                 return out;
               });
  return residual(attended, first, norm2, dropout2, layer_scale2, [&](const torch::Tensor& y) {
    return feed_forward(y, *linear1, *dropout, *linear2, options.activation());
  });
}

}  // namespace posenc
