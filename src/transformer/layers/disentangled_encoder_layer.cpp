#include "posenc/transformer/layers/disentangled_encoder_layer.h"

#include <ostream>
#include <tuple>
#include <utility>

#include "transformer/functional/drop.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {

DisentangledEncoderLayerImpl::DisentangledEncoderLayerImpl(TransformerLayerOptions options_)
    : options(std::move(options_)) {
  DisentangledEncoderLayerImpl::reset();
}

void DisentangledEncoderLayerImpl::reset() {
  constexpr const char* kLayer = "DisentangledEncoderLayer";
  TORCH_CHECK_VALUE(options.disentangled(), "[", kLayer,
                    "] disentangled must be set. Got no disentangled attention");
  check_layer(kLayer, options);
  check_defaults(kLayer, options, {"disentangled"});
  const LayerDropouts drops = dropouts_of(options);
  self_attn = register_module(
      "self_attn",
      DisentangledAttention(DisentangledAttentionOptions(options.d_model(), options.num_heads(),
                                                         *options.disentangled())
                                .scale(options.attention_scale())
                                .key_bias(options.key_bias())
                                .dropout(drops.attention)
                                .position_dropout(drops.attention_output)));
  linear1 = register_module("linear1", make_linear1(options));
  dropout = register_module("dropout", torch::nn::Dropout(drops.activation));
  linear2 = register_module("linear2", make_linear2(options));
  norm1 = register_module("norm1", make_norm(options));
  norm2 = register_module("norm2", make_norm(options));
  dropout1 = register_module("dropout1", torch::nn::Dropout(drops.attention_output));
  dropout2 = register_module("dropout2", torch::nn::Dropout(drops.output));
}

void DisentangledEncoderLayerImpl::reset_parameters() {
  self_attn->reset_parameters();
  linear1->reset_parameters();
  linear2->reset_parameters();
  norm1->reset_parameters();
  norm2->reset_parameters();
}

void DisentangledEncoderLayerImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::DisentangledEncoderLayer(";
  print(stream, options);
  stream << ")";
}

torch::Tensor DisentangledEncoderLayerImpl::forward(const torch::Tensor& x,
                                                    const torch::Tensor& table,
                                                    const AttentionMask& mask) {
  return run_relative(x, {table, {}}, mask, {}, nullptr);
}

torch::Tensor DisentangledEncoderLayerImpl::run(const torch::Tensor& x, const AttentionMask& mask,
                                                const torch::Tensor& position_ids,
                                                torch::Tensor* weights) {
  return run_relative(x, {}, mask, position_ids, weights);
}

torch::Tensor DisentangledEncoderLayerImpl::run_relative(const torch::Tensor& x,
                                                         const StackPositions& relative,
                                                         const AttentionMask& mask,
                                                         const torch::Tensor&,
                                                         torch::Tensor* weights) {
  torch::Tensor y;
  if (weights == nullptr) {
    y = self_attn->forward(x, relative.table, mask);
  } else {
    std::tie(y, *weights) = self_attn->forward_with_weights(x, relative.table, mask);
  }
  y = norm1->forward(x + drop(*dropout1, y));
  return norm2->forward(y +
                        drop(*dropout2, feed_forward(y, *linear1, *dropout, *linear2, options)));
}

}  // namespace posenc
