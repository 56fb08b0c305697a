#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <torch/optim/adam.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/sgd.h>

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "train/option_fields.h"

namespace posenc::train {

template <typename Options>
using Traits = OptimizerTraits<std::remove_const_t<Options>>;

/// `parameter 2 of group 0, [5, 3]`
inline std::string place(std::size_t group, std::size_t index, const at::Tensor& parameter) {
  return c10::str("parameter ", index, " of group ", group, ", ", parameter.sizes());
}

/// The tensors of a state; each has its parameter's shape or is undefined.
inline std::vector<at::Tensor*> tensors_of(torch::optim::AdamParamState& state) {
  return {&state.exp_avg(), &state.exp_avg_sq(), &state.max_exp_avg_sq()};
}
inline std::vector<at::Tensor*> tensors_of(torch::optim::SGDParamState& state) {
  return {&state.momentum_buffer()};
}

// Visits a field as numbers; betas are two.
template <typename Visit>
void numbers(const std::string& name, std::tuple<double, double>& betas, Visit&& visit) {
  visit(name == "betas" ? "beta1" : name, std::get<0>(betas));
  visit(name == "betas" ? "beta2" : name, std::get<1>(betas));
}
template <typename Value, typename Visit>
void numbers(const std::string& name, Value& value, Visit&& visit) {
  visit(name, value);
}

/// Returns the options of a group as `Options`. They may be those of another optimiser:
/// set_options() accepts any, and so does add_param_group() through a base reference, in LibTorch
/// up to 2.12.
template <typename Options, typename Base>
Options& own_options(Base& options, std::size_t group) {
  auto* const own = dynamic_cast<Options*>(&options);
  TORCH_CHECK_TYPE(own != nullptr, "[", Traits<Options>::kOptimizer, "] group ", group,
                   " must have ", Traits<Options>::kOptimizer,
                   "Options. Got those of another optimiser");
  return *own;
}

// Keys that LibTorch's archives lack.
constexpr const char* kInitialRate = "initial_lr";
constexpr const char* kArchiveRule = "posenc_rule";

/// Holds groups and states while an archive is read.
struct Loaded : torch::optim::Optimizer {
  using Optimizer::Optimizer;
  torch::Tensor step(LossClosure) override { return {}; }
};

}  // namespace posenc::train
