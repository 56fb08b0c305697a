#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "posenc/train/fused_adam.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/sparse_adam.h"

namespace posenc::testing {

using OptimizerPtr = std::unique_ptr<torch::optim::Optimizer>;

/// Sets options through their setters, by PyTorch's names.
template <typename Options>
Options options_of(const nlohmann::json& given) {
  Options options;
  for (const auto& [name, value] : given.items()) {
    if (name == "lr")
      options.lr(value);
    else if (name == "maximize")
      options.maximize(value);
    else if constexpr (requires { options.momentum(); }) {
      if (name == "momentum")
        options.momentum(value);
      else if (name == "dampening")
        options.dampening(value);
      else if (name == "nesterov")
        options.nesterov(value);
      else if (name == "weight_decay")
        options.weight_decay(value);
      else
        throw std::invalid_argument(name);
    } else {
      if (name == "betas")
        options.betas({value[0], value[1]});
      else if (name == "eps")
        options.eps(value);
      else if constexpr (requires { options.amsgrad(); }) {
        if (name == "amsgrad")
          options.amsgrad(value);
        else if (name == "weight_decay")
          options.weight_decay(value);
        else
          throw std::invalid_argument(name);
      } else
        throw std::invalid_argument(name);
    }
  }
  return options;
}

template <typename Optimizer, typename Options>
OptimizerPtr make(const nlohmann::json& options, const nlohmann::json& groups,
                  const std::vector<torch::Tensor>& parameters) {
  std::vector<torch::optim::OptimizerParamGroup> listed;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::vector<torch::Tensor> one = {parameters[i]};
    if (groups[i].empty())
      listed.emplace_back(one);
    else
      listed.emplace_back(one, std::make_unique<Options>(options_of<Options>(groups[i])));
  }
  return std::make_unique<Optimizer>(listed, options_of<Options>(options));
}

/// Makes posenc's optimiser for Python's `Adam`, `AdamW`, `SGD` or `SparseAdam`, with one group per
/// parameter.
inline OptimizerPtr make_optimizer(const std::string& kind, const nlohmann::json& options,
                                   const nlohmann::json& groups,
                                   const std::vector<torch::Tensor>& parameters) {
  if (kind == "Adam") return make<FusedAdam, FusedAdamOptions>(options, groups, parameters);
  if (kind == "AdamW") return make<FusedAdamW, FusedAdamWOptions>(options, groups, parameters);
  if (kind == "SGD") return make<FusedSGD, FusedSGDOptions>(options, groups, parameters);
  if (kind == "SparseAdam") return make<SparseAdam, SparseAdamOptions>(options, groups, parameters);
  throw std::invalid_argument(kind);
}

}  // namespace posenc::testing
