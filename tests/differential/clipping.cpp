// Trainer's clip_norm: one step with given gradients, dense and sparse.

#include <torch/nn/module.h>
#include <torch/utils.h>

#include "differential/ops.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/trainer.h"

namespace posenc::differential {
namespace {

at::Tensor gradient(const StateDict& tensors, const std::string& number, const at::Tensor& p) {
  if (tensors.contains("grad." + number)) return tensors["grad." + number].clone();
  if (!tensors.contains("rows." + number)) return {};
  return at::sparse_coo_tensor(tensors["rows." + number].unsqueeze(0), tensors["values." + number],
                               p.sizes());
}

StateDict clip(const Json& options, const StateDict& tensors) {
  torch::nn::Module module;
  std::vector<at::Tensor> parameters;
  while (tensors.contains("start." + std::to_string(parameters.size()))) {
    const auto number = std::to_string(parameters.size());
    parameters.push_back(tensors["start." + number].clone().set_requires_grad(true));
    module.register_parameter("p" + number, parameters.back());
    if (options.at("twice").get<bool>()) module.register_parameter("q" + number, parameters.back());
  }
  FusedSGD optimizer(parameters, options.at("lr").get<double>());
  PairLoader loader({{{1, 2}, {1, 2}}});
  const auto loss = [&](const PairBatch&) {  // gradients are set here; backward() adds none
    for (size_t k = 0; k < parameters.size(); ++k)
      parameters[k].mutable_grad() = gradient(tensors, std::to_string(k), parameters[k]);
    return at::zeros({}, at::kDouble).set_requires_grad(true).clone();
  };
  // The first of two steps: a run may not end with weights that are not finite, as some are here.
  Trainer trainer({module, &optimizer}, loader, loss,
                  TrainerOptions(2).clip_norm(options.at("max_norm").get<double>()));
  trainer.train(1);
  StateDict results;
  for (size_t k = 0; k < parameters.size(); ++k) {
    results.insert("after." + std::to_string(k), parameters[k].detach());
    const auto grad = parameters[k].grad();
    if (grad.defined())
      results.insert("grad." + std::to_string(k), grad.is_sparse() ? grad.to_dense() : grad);
  }
  return results;
}

}  // namespace

Ops clipping_ops() { return {{"clip", clip}}; }

}  // namespace posenc::differential
