#include "inference/layers/freeze_parts.h"

namespace posenc::inference {

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
