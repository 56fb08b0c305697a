#include "inference/layers/freeze_parts.h"

#include <ATen/ops/zeros.h>

namespace posenc::inference {
namespace {

// The weight (D, E / g, K) of a convolution of E channels in g groups as that of a linear layer
// (D, K E).
at::Tensor dense_weight(const torch::nn::Conv1dImpl& conv) {
  const at::Tensor weight = conv.weight.detach();
  const int64_t groups = conv.options.groups(), part = weight.size(1);
  const int64_t outputs = weight.size(0) / groups;
  const at::Tensor dense =
      at::zeros({weight.size(0), weight.size(2), groups * part}, weight.options());
  for (int64_t g = 0; g < groups; ++g) {
    dense.narrow(0, g * outputs, outputs)
        .narrow(2, g * part, part)
        .copy_(weight.narrow(0, g * outputs, outputs).transpose(1, 2));
  }
  return dense.flatten(1);
}

}  // namespace

// lambda1 * (W x + b) is (lambda1 W) x + lambda1 b.
Projection linear(const torch::nn::LinearImpl& module, WeightConverter& convert,
                  const LayerScaleImpl* scale) {
  if (scale == nullptr) return convert.projection(module.weight, module.bias);
  const at::Tensor& factors = scale->lambda1;
  convert.derived(factors, 0);
  if (module.bias.defined())
    convert.derived(module.bias, static_cast<int64_t>(module.bias.nbytes()));
  return convert.projection(module.weight,
                            module.bias.defined() ? module.bias * factors : module.bias,
                            module.weight, factors);
}

Projection convolution(const torch::nn::Conv1dImpl& module, WeightConverter& convert) {
  const at::Tensor& weight = module.weight;
  const int64_t inner = weight.numel() / weight.size(0) * module.options.groups();
  const at::Tensor dense = convert.computed(weight, "dense", {weight.size(0), inner},
                                            [&] { return dense_weight(module); });
  convert.derived(weight, static_cast<int64_t>(dense.nbytes()));
  convert.leave_out(weight);
  return convert.float_projection(dense, module.bias.detach());
}

FeedForward network_of(const blocks::Network& network, WeightConverter& convert,
                       const LayerScaleImpl* scale) {
  const TransformerLayerOptions& options = *network.options;
  return {linear(*network.wide, convert), linear(*network.narrow, convert, scale),
          options.activation(), options.feed_forward() == posenc::FeedForward::Gated};
}

Projection in_projection(const MultiheadAttentionImpl& attention, int64_t first, int64_t count,
                         WeightConverter& convert) {
  const auto rows = [&](const at::Tensor& whole) {
    return whole.defined() ? whole.narrow(0, first, count) : whole;
  };
  return convert.projection(rows(attention.in_proj_weight), rows(attention.in_proj_bias),
                            attention.in_proj_weight);
}

void shift_norms(const std::vector<Norm*>& norms, Norm& entry, const Norm& last) {
  entry = *norms.front();
  for (std::size_t i = 0; i + 1 < norms.size(); ++i) *norms[i] = *norms[i + 1];
  *norms.back() = last;
}

float scale_of(const MultiheadAttentionImpl& attention) {
  const int64_t head_dim = HeadSizes::of(attention.options).head_dim;
  return static_cast<float>(attention.options.scale().value_or(score_scale(head_dim)));
}

std::optional<std::size_t> relative_of(std::vector<RelativeBias>& all,
                                       const RelativePositionBias& shared,
                                       const RelativePositionBias& own) {
  const RelativePositionBias& bias = shared ? shared : own;
  return bias ? std::optional<std::size_t>(add_bias(all, *bias)) : std::nullopt;
}

}  // namespace posenc::inference
