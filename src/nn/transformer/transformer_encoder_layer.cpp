#include "posenc/nn/transformer/transformer_encoder_layer.h"

#include <ostream>

#include "functional/attention_mask_internals.h"
#include "functional/fourier_mixing.h"
#include "nn/transformer/layer_parts.h"

namespace posenc {
namespace {

torch::Tensor mix_by_fourier(const torch::Tensor& x, const AttentionMask& mask, bool batch_first) {
  TORCH_CHECK_VALUE(AttentionMaskAccess::without_keys(mask).is_none(),
                    "[TransformerEncoderLayer] mask must be of keys only with Mixing::Fourier, "
                    "which mixes all tokens. Got another mask");
  if (batch_first) return functional::fourier_mixing(x);
  return functional::fourier_mixing(x.transpose(0, 1)).transpose(0, 1);
}

}  // namespace

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options_)
    : options(options_) {
  TransformerEncoderLayerImpl::reset();
}

void TransformerEncoderLayerImpl::reset() {
  check_layer("TransformerEncoderLayer", options);
  const LayerDropouts drops = dropouts_of(options);
  if (options.mixing() == Mixing::Attention) {
    self_attn = register_module("self_attn", make_attention(options));
  }
  linear1 = register_module("linear1", make_linear1(options));
  dropout = register_module("dropout", torch::nn::Dropout(drops.activation));
  linear2 = register_module("linear2", make_linear2(options));
  if (options.first_norm()) norm1 = register_module("norm1", make_norm(options));
  norm2 = register_module("norm2", make_norm(options));
  if (options.post_norms()) {
    post_norm1 = register_module("post_norm1", make_norm(options));
    post_norm2 = register_module("post_norm2", make_norm(options));
  }
  if (options.layer_scale()) {
    layer_scale1 = register_module("layer_scale1", make_scale(options));
    layer_scale2 = register_module("layer_scale2", make_scale(options));
  }
  dropout1 = register_module("dropout1", torch::nn::Dropout(drops.attention_output));
  dropout2 = register_module("dropout2", torch::nn::Dropout(drops.output));
}

void TransformerEncoderLayerImpl::reset_parameters() {
  if (self_attn) self_attn->reset_parameters();
  for (auto* linear : {&linear1, &linear2}) (*linear)->reset_parameters();
  for (auto* norm : {&norm1, &norm2, &post_norm1, &post_norm2}) {
    if (*norm) (*norm)->reset_parameters();
  }
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
                                                   const AttentionMask& mask,
                                                   const torch::Tensor& position_ids) {
  return run(x, with_window(mask, options), position_ids, nullptr);
}

std::tuple<torch::Tensor, torch::Tensor> TransformerEncoderLayerImpl::forward_with_weights(
    const torch::Tensor& x, const AttentionMask& mask, const torch::Tensor& position_ids) {
  torch::Tensor weights;
  const torch::Tensor out = run(x, with_window(mask, options), position_ids, &weights);
  return {out, weights};
}

torch::Tensor TransformerEncoderLayerImpl::run(const torch::Tensor& x, const AttentionMask& mask,
                                               const torch::Tensor& position_ids,
                                               torch::Tensor* weights) {
  const bool first = options.norm_first();
  const bool attends = options.mixing() == Mixing::Attention;
  TORCH_CHECK_VALUE(attends || weights == nullptr,
                    "[TransformerEncoderLayer] mixing must be Mixing::Attention for attention "
                    "weights. Got Mixing::Fourier");
  const torch::Tensor rotated = attends && self_attn->rotary ? position_ids : torch::Tensor();
  const double path = dropouts_of(options).path;
  const auto kept = [&](const torch::Tensor& y) {
    return drop_path(y, path, is_training(), options.batch_first());
  };
  const auto mix = [&](const torch::Tensor& y) {
    if (!attends) return kept(mix_by_fourier(y, mask, options.batch_first()));
    if (weights == nullptr) return kept(self_attn->forward(y, y, y, mask, rotated));
    auto [out, shares] = self_attn->forward_with_weights(y, y, y, mask,
                                                         /*average_attn_weights=*/false, rotated);
    *weights = shares;
    return kept(out);
  };
  const torch::Tensor attended = residual(x, first, norm1, post_norm1, dropout1, layer_scale1, mix);
  return residual(attended, first, norm2, post_norm2, dropout2, layer_scale2,
                  [&](const torch::Tensor& y) {
                    return kept(feed_forward(y, *linear1, *dropout, *linear2, options));
                  });
}

}  // namespace posenc
