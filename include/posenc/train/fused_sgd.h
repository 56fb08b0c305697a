#pragma once

#include <torch/optim/sgd.h>

#include <vector>

#include "posenc/export.h"
#include "posenc/train/optimizer.h"

namespace posenc POSENC_EXPORT {

/// Options of FusedSGD, with PyTorch's names.
class FusedSGDOptions : public OptimizerOptions<FusedSGDOptions> {
 public:
  static constexpr const char* kOptimizer = "FusedSGD";  ///< for messages
  static constexpr const char* kRule = "SGD";            ///< CheckpointableOptimizer::rule()
  FusedSGDOptions() = default;
  /// The default options with this learning rate.
  FusedSGDOptions(double lr) { this->lr(lr); }  // NOLINT: a learning rate is options

 private:
  using Derived = FusedSGDOptions;
  /// The learning rate.
  POSENC_OPTIMIZER_ARG(double, lr) = 1e-3;
  /// The momentum.
  POSENC_OPTIMIZER_ARG(double, momentum) = 0.0;
  /// The dampening of the momentum.
  POSENC_OPTIMIZER_ARG(double, dampening) = 0.0;
  /// The weight decay.
  POSENC_OPTIMIZER_ARG(double, weight_decay) = 0.0;
  /// Uses Nesterov momentum, which requires a momentum and no dampening.
  POSENC_OPTIMIZER_ARG(bool, nesterov) = false;
  /// Maximizes the objective instead of minimizing it.
  POSENC_OPTIMIZER_ARG(bool, maximize) = false;

 public:
  /// Throws c10::ValueError for options out of range.
  void check() const;
  /// Returns why `gradient` is not accepted, or nullptr if it is.
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

/// Stochastic gradient descent in a single pass, by ATen's fused kernels (CPU and CUDA):
///
///     g = grad + weight_decay p;  b = momentum b + (1 - dampening) g, at first b = g
///     p = p - lr b, or p - lr (g + momentum b) with nesterov
///
/// Bit-identical to Python's torch.optim.SGD(fused=True) on the same machine; for strides see
/// FusedAdam. A sparse gradient updates only its own rows, p[i] -= lr g[i], bit-identical to
/// Python's SGD, whose fused version does not accept sparse gradients. With momentum all rows
/// change, and the step costs as much as a dense one.
///
/// Errors: those of OptimizerBase; weight_decay with a sparse gradient.
class FusedSGD : public OptimizerBase<FusedSGDOptions, torch::optim::SGDParamState> {
 public:
  using OptimizerBase::OptimizerBase;

 private:
  void step_group(const FusedSGDOptions& options, std::vector<Entry>& entries) override;
};

}  // namespace posenc
