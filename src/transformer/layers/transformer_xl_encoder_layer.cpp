#include "posenc/transformer/layers/transformer_xl_encoder_layer.h"

#include <ostream>
#include <tuple>
#include <utility>

#include "transformer/functional/drop.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {

TransformerXLEncoderLayerImpl::TransformerXLEncoderLayerImpl(TransformerLayerOptions options_)
    : options(std::move(options_)) {
  TransformerXLEncoderLayerImpl::reset();
}

void TransformerXLEncoderLayerImpl::reset() {
  constexpr const char* kLayer = "TransformerXLEncoderLayer";
  TORCH_CHECK_VALUE(options.transformer_xl(), "[", kLayer,
                    "] transformer_xl must be set. It is not");
  check_layer(kLayer, options);
  check_defaults(kLayer, options, {"transformer_xl", "bias", "window"});
  const LayerDropouts drops = dropouts_of(options);
  self_attn = register_module("self_attn", make_transformer_xl_attention(options));
  linear1 = register_module("linear1", make_linear1(options));
  dropout = register_module("dropout", torch::nn::Dropout(drops.activation));
  linear2 = register_module("linear2", make_linear2(options));
  norm1 = register_module("norm1", make_norm(options));
  norm2 = register_module("norm2", make_norm(options));
  dropout1 = register_module("dropout1", torch::nn::Dropout(drops.attention_output));
  dropout2 = register_module("dropout2", torch::nn::Dropout(drops.output));
}

void TransformerXLEncoderLayerImpl::reset_parameters() {
  self_attn->reset_parameters();
  linear1->reset_parameters();
  linear2->reset_parameters();
  norm1->reset_parameters();
  norm2->reset_parameters();
}

void TransformerXLEncoderLayerImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::TransformerXLEncoderLayer(";
  print(stream, options);
  stream << ")";
}

torch::Tensor TransformerXLEncoderLayerImpl::forward(const torch::Tensor& x,
                                                     const torch::Tensor& table,
                                                     const AttentionMask& mask,
                                                     const torch::Tensor& segments) {
  return run_relative(x, {table, segments}, with_window(mask, options), {}, nullptr);
}

torch::Tensor TransformerXLEncoderLayerImpl::run(const torch::Tensor& x, const AttentionMask& mask,
                                                 const torch::Tensor& position_ids,
                                                 torch::Tensor* weights) {
  return run_relative(x, {}, mask, position_ids, weights);
}

torch::Tensor TransformerXLEncoderLayerImpl::run_relative(const torch::Tensor& x,
                                                          const StackPositions& relative,
                                                          const AttentionMask& mask,
                                                          const torch::Tensor&,
                                                          torch::Tensor* weights) {
  torch::Tensor y;
  if (weights == nullptr) {
    y = self_attn->forward(x, relative.table, mask, relative.segments);
  } else {
    std::tie(y, *weights) =
        self_attn->forward_with_weights(x, relative.table, mask, relative.segments);
  }
  y = norm1->forward(x + drop(*dropout1, y));
  return norm2->forward(y +
                        drop(*dropout2, feed_forward(y, *linear1, *dropout, *linear2, options)));
}

}  // namespace posenc
