#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace posenc {

/// What is added to some outputs of a linear layer while an adapter is trained beside its weight:
///
///     y + scale * drop(x) A^T B^T, or with a magnitude m / |W + scale B A| of the whole.
struct LowRankAddition {
  int64_t begin = 0, rows = 0;  ///< the outputs: rows of the weight
  at::Tensor a, b;              ///< (r, in) and (rows, r)
  at::Tensor magnitude;         ///< (rows), or undefined
  double scale = 1.0, dropout = 0.0;
  std::function<bool()> is_training = {};
};

/// Attaches additions to a weight, in place of earlier ones; none take them off, which must be done
/// while the weight is alive. All who hold the weight see them, also after Module::to(); copies of
/// it and views have none.
void attach_additions(const at::Tensor& weight, std::vector<LowRankAddition> additions);
/// Those of a weight.
const std::vector<LowRankAddition>& additions_of(const at::Tensor& weight);

/// at::linear() by the rows from `begin` on of a weight and of its bias, of which `rows` are taken,
/// or all; with what is attached to the weight.
at::Tensor linear_rows(const at::Tensor& x, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, int64_t begin = 0, int64_t rows = -1);

/// The forward() of a linear layer, with what is attached to its weight.
template <typename Linear>
at::Tensor forward_linear(Linear& layer, const at::Tensor& x) {
  if (additions_of(layer.weight).empty()) return layer.forward(x);
  return linear_rows(x, layer.weight,
                     layer.bias.defined() ? std::optional<at::Tensor>(layer.bias) : std::nullopt);
}

}  // namespace posenc
