#include "positions/relative/cosine_window.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>

#include <cmath>

#include "core/tensors.h"
#include "posenc/positions/relative/bias.h"

namespace posenc::relative {

at::Tensor normalized(const at::Tensor& x) {
  constexpr double kEpsilon = 1e-12;
  return x /
         at::linalg_vector_norm(x, 2, at::IntArrayRef({-1}), true).clamp_min(kEpsilon).expand_as(x);
}

at::Tensor cosine_scale(const at::Tensor& logit_scale) {
  return at::clamp(logit_scale, std::nullopt, std::log(1.0 / 0.01)).exp();
}

at::Tensor cosine_scores(const at::Tensor& q, const at::Tensor& k, const at::Tensor& logit_scale) {
  return at::matmul(normalized(q), normalized(k).transpose(-2, -1)) * cosine_scale(logit_scale);
}

at::Tensor continuous_inputs(Grid window, Grid pretrained, LogCoordinates coordinates,
                             const at::Tensor& first_weight) {
  return sent_to(relative_log_coordinates(window, coordinates, pretrained)
                     .unsqueeze(0)
                     .to(first_weight.scalar_type()),
                 first_weight.device());
}

at::Tensor continuous_position_bias(Grid window, Grid pretrained, LogCoordinates coordinates,
                                    const at::Tensor& first_weight, const at::Tensor& first_bias,
                                    const at::Tensor& second_weight) {
  const at::Tensor inputs = continuous_inputs(window, pretrained, coordinates, first_weight);
  const at::Tensor table =
      at::linear(at::relu(at::linear(inputs, first_weight, first_bias)), second_weight)
          .view({-1, second_weight.size(0)});
  const at::Tensor index = sent_to(relative_window_index(window), table.device());
  return at::sigmoid(relative_bias_of_indices(table, index)) * 16;
}

}  // namespace posenc::relative
