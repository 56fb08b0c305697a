#include "posenc/nn/transformer/transformer_encoder.h"

#include <ostream>
#include <tuple>

#include "core/check.h"
#include "nn/transformer/layer_parts.h"

namespace posenc {

TransformerEncoderImpl::TransformerEncoderImpl(TransformerEncoderOptions options_)
    : options(options_) {
  TransformerEncoderImpl::reset();
}

void TransformerEncoderImpl::reset() {
  check_positive("TransformerEncoder", "num_layers", options.num_layers());
  for (const int64_t i : options.order()) {
    TORCH_CHECK_VALUE(i >= 0 && i < options.num_layers(),
                      "[TransformerEncoder] order must have indices of layers, in [0, ",
                      options.num_layers(), "). Got ", i);
  }
  layers = register_module("layers", torch::nn::ModuleList());
  for (int64_t i = 0; i < options.num_layers(); ++i) {
    layers->push_back(TransformerEncoderLayer(options.layer()));
  }
  if (options.norm()) norm = register_module("norm", make_norm(options.layer()));
}

void TransformerEncoderImpl::reset_parameters() {
  for (size_t i = 0; i < layers->size(); ++i) layer(i).reset_parameters();
  if (norm) norm->reset_parameters();
}

void TransformerEncoderImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::TransformerEncoder(num_layers=" << options.num_layers() << ", ";
  print(stream, options.layer());
  if (options.norm()) stream << ", norm=true";
  if (!options.order().empty()) stream << ", order=" << at::IntArrayRef(options.order());
  stream << ")";
}

TransformerEncoderLayerImpl& TransformerEncoderImpl::layer(size_t i) const {
  return layer_of<TransformerEncoderLayerImpl>("TransformerEncoder", layers, i);
}

torch::Tensor TransformerEncoderImpl::forward(const torch::Tensor& x, const AttentionMask& mask) {
  TransformerEncoderRecord nothing;
  return forward_with(x, mask, nothing);
}

torch::Tensor TransformerEncoderImpl::forward_with(const torch::Tensor& x,
                                                   const AttentionMask& mask,
                                                   TransformerEncoderRecord& record) {
  const auto ready = mask.resolved(attention_shape("TransformerEncoder", x, x, options.layer()), x);
  torch::Tensor out = x;
  const auto add_hidden_state = [&] {
    if (record.output_hidden_states) record.hidden_states.push_back(out);
  };
  add_hidden_state();
  for (const size_t i : layers_in_order(options.order(), layers->size())) {
    if (record.output_attentions) {
      std::tie(out, record.attentions.emplace_back()) = layer(i).forward_with_weights(out, ready);
    } else {
      out = layer(i).forward(out, ready);
    }
    add_hidden_state();
  }
  return norm ? norm->forward(out) : out;
}

}  // namespace posenc
