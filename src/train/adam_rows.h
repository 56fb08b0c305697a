#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/adam.h>

#include <tuple>

namespace posenc::train {

/// What a step of rows takes from the options of its group.
struct RowOptions {
  std::tuple<double, double> betas;
  double lr, eps;
  bool maximize;
};

/// A step of SparseAdam: of the rows of `parameter` and of its moments that are in the gradient.
void step_rows(const RowOptions& options, const at::Tensor& parameter, const at::Tensor& gradient,
               torch::optim::AdamParamState& state);

template <typename Options>
void step_rows(const Options& options, const at::Tensor& parameter, const at::Tensor& gradient,
               torch::optim::AdamParamState& state) {
  step_rows(RowOptions{options.betas(), options.lr(), options.eps(), options.maximize()}, parameter,
            gradient, state);
}

/// Why such a step does not accept a gradient, or nullptr.
const char* refusal_of_rows(const at::Tensor& gradient);

}  // namespace posenc::train
