#include "nn/transformer/layer_parts.h"

#include <cmath>
#include <numeric>

#include "core/check.h"
#include "nn/layers.h"
#include "posenc/functional/dropout.h"

namespace posenc {

void check_layer(const char* module, const TransformerLayerOptions& options) {
  check_positive(module, "d_model", options.d_model());
  check_positive(module, "num_heads", options.num_heads());
  check_positive(module, "d_ff", options.d_ff());
  check_dropout(module, options.dropout());
  TORCH_CHECK_VALUE(options.d_model() % options.num_heads() == 0, "[", module,
                    "] num_heads must divide d_model ", options.d_model(), ". Got ",
                    options.num_heads());
  const double scale = options.layer_scale().value_or(1.0);
  TORCH_CHECK_VALUE(std::isfinite(scale), "[", module, "] layer_scale must be finite. Got ", scale);
}

MultiheadAttention make_attention(const TransformerLayerOptions& options) {
  return MultiheadAttention(MultiheadAttentionOptions(options.d_model(), options.num_heads())
                                .dropout(options.dropout())
                                .bias(options.bias())
                                .batch_first(options.batch_first())
                                .python_dropout_order(options.python_dropout_order()));
}

torch::nn::Linear make_linear(int64_t from, int64_t to, const TransformerLayerOptions& options) {
  return posenc::make_linear(torch::nn::LinearOptions(from, to).bias(options.bias()));
}

LayerNorm make_norm(const TransformerLayerOptions& options) {
  return LayerNorm(
      LayerNormOptions(options.d_model()).eps(options.layer_norm_eps()).bias(options.bias()));
}

LayerScale make_scale(const TransformerLayerOptions& options) {
  return LayerScale(LayerScaleOptions(options.d_model()).init(*options.layer_scale()));
}

std::vector<size_t> layers_in_order(const std::vector<int64_t>& order, size_t count) {
  std::vector<size_t> indices(order.begin(), order.end());
  if (order.empty()) {
    indices.resize(count);
    std::iota(indices.begin(), indices.end(), size_t{0});
  }
  return indices;
}

torch::Tensor drop(const torch::nn::DropoutImpl& dropout, const torch::Tensor& x) {
  return functional::dropout(x, dropout.options.p(), dropout.is_training());
}

torch::Tensor branch(const torch::nn::DropoutImpl& dropout, const LayerScale& scale,
                     const torch::Tensor& x) {
  const torch::Tensor dropped = drop(dropout, x);
  return scale.is_empty() ? dropped : scale.ptr()->forward(dropped);
}

torch::Tensor feed_forward(const torch::Tensor& x, torch::nn::LinearImpl& linear1,
                           torch::nn::DropoutImpl& dropout, torch::nn::LinearImpl& linear2,
                           Activation activation) {
  torch::Tensor hidden = linear1.forward(x);  // (B, L, d_ff)
  switch (activation) {
    case Activation::ReLU: hidden.relu_(); break;  // in place: a layer's largest tensor
    case Activation::GELU: hidden = torch::gelu(hidden); break;
    case Activation::Swish: hidden = torch::silu(hidden); break;
    case Activation::GELUTanh: hidden = torch::gelu(hidden, "tanh"); break;
    case Activation::QuickGELU: hidden = hidden * torch::sigmoid(1.702 * hidden); break;
  }
  return linear2.forward(drop(dropout, hidden));
}

AttentionShape attention_shape(const char* module, const torch::Tensor& x,
                               const torch::Tensor& keys, const TransformerLayerOptions& options) {
  const char* layout = options.batch_first() ? "(B, L, " : "(L, B, ";
  for (const auto* one : {&x, &keys}) {
    TORCH_CHECK_VALUE(one->dim() == 3 && one->size(2) == options.d_model(), "[", module,
                      "] a sequence must be ", layout, options.d_model(), "). Got ", one->sizes());
  }
  const int64_t batch = options.batch_first() ? 0 : 1;
  return {x.size(batch), options.num_heads(), x.size(1 - batch), keys.size(1 - batch)};
}

void print(std::ostream& stream, const TransformerLayerOptions& options) {
  stream << "d_model=" << options.d_model() << ", num_heads=" << options.num_heads()
         << ", d_ff=" << options.d_ff() << ", dropout=" << options.dropout();
  if (options.activation() != Activation::ReLU) {
    stream << ", activation=" << to_string(options.activation());
  }
  if (options.norm_first()) stream << ", norm_first=true";
  if (options.layer_norm_eps() != 1e-5) stream << ", layer_norm_eps=" << options.layer_norm_eps();
  if (!options.bias()) stream << ", bias=false";
  if (!options.batch_first()) stream << ", batch_first=false";
  if (options.layer_scale()) stream << ", layer_scale=" << *options.layer_scale();
  if (options.python_dropout_order()) stream << ", python_dropout_order=true";
}

}  // namespace posenc
