#pragma once

#include <torch/optim/sgd.h>

#include <vector>

#include "posenc/train/optimizer.h"

namespace posenc {

/// By PyTorch's names.
class FusedSGDOptions : public OptimizerOptions<FusedSGDOptions> {
 public:
  static constexpr const char* kOptimizer = "FusedSGD";
  static constexpr const char* kRule = "SGD";
  FusedSGDOptions() = default;
  FusedSGDOptions(double lr) { this->lr(lr); }  // NOLINT: a learning rate is options

 private:
  using Derived = FusedSGDOptions;
  POSENC_OPTIMIZER_ARG(double, lr) = 1e-3;
  POSENC_OPTIMIZER_ARG(double, momentum) = 0.0;
  POSENC_OPTIMIZER_ARG(double, dampening) = 0.0;
  POSENC_OPTIMIZER_ARG(double, weight_decay) = 0.0;
  /// Needs a momentum and no dampening.
  POSENC_OPTIMIZER_ARG(bool, nesterov) = false;
  /// Maximize the objective instead of minimizing it.
  POSENC_OPTIMIZER_ARG(bool, maximize) = false;

 public:
  void check() const;
  /// Why a gradient is refused; nullptr where it is accepted.
  const char* refusal(const torch::Tensor& gradient) const;
  /// Calls visit(name, pointer to member) for every option.
  template <typename Visit>
  static void fields(Visit&& visit) {
    visit("lr", &FusedSGDOptions::lr_);
    visit("momentum", &FusedSGDOptions::momentum_);
    visit("dampening", &FusedSGDOptions::dampening_);
    visit("weight_decay", &FusedSGDOptions::weight_decay_);
    visit("nesterov", &FusedSGDOptions::nesterov_);
    visit("maximize", &FusedSGDOptions::maximize_);
  }
};

/// Stochastic gradient descent in one pass, by ATen's fused kernels (CPU and CUDA):
///
///     g = grad + weight_decay p;  b = momentum b + (1 - dampening) g, at first b = g
///     p = p - lr b, or p - lr (g + momentum b) with nesterov
///
/// The bits of Python's torch.optim.SGD(fused=True) on the same machine, strides as in FusedAdam.
/// A sparse gradient costs its own rows only, p[i] -= lr g[i], with the bits of Python's SGD (whose
/// fused form refuses it); with momentum all rows move, and the step costs as much as a dense one.
/// Errors: OptimizerOf; weight_decay with a sparse gradient.
class FusedSGD : public OptimizerOf<FusedSGDOptions, torch::optim::SGDParamState> {
 public:
  using OptimizerOf::OptimizerOf;

 private:
  void step_group(const FusedSGDOptions& options, std::vector<Entry>& entries) override;
};

}  // namespace posenc
