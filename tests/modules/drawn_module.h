#pragma once

#include <torch/nn/module.h>
#include <torch/utils.h>

#include <algorithm>
#include <string>

namespace posenc::testing {

/// The module in eval mode, with other weights and running statistics than its initial ones.
template <typename Module>
Module drawn(Module module) {
  torch::manual_seed(8);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module->parameters()) parameter.add_(torch::randn_like(parameter), 0.4);
  for (auto& item : module->named_buffers()) {
    if (item.key().find("running") != std::string::npos)
      item.value().copy_(torch::rand_like(item.value()) + 0.5);
  }
  module->eval();
  return module;
}

/// Whether no element is off by more than 1e-5 of the largest: sums without norms grow from layer
/// to layer.
inline bool near(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>() <= 1e-5 * std::max(1.0, b.abs().max().item<double>());
}

}  // namespace posenc::testing
