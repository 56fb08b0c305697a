#pragma once

#include <torch/optim/sgd.h>

#include <vector>

#include "posenc/export.h"
#include "posenc/train/optimizer.h"

namespace posenc POSENC_EXPORT {

/// Options of FusedSGD.
class FusedSGDOptions : public OptimizerOptions<FusedSGDOptions> {
 public:
  FusedSGDOptions() = default;
  /// The default options with this learning rate.
  FusedSGDOptions(double lr) { this->lr(lr); }  // NOLINT: implicit by design

 private:
  using Derived = FusedSGDOptions;
  /// The momentum.
  POSENC_OPTIMIZER_ARG(double, momentum) = 0.0;
  /// The dampening of the momentum.
  POSENC_OPTIMIZER_ARG(double, dampening) = 0.0;
  /// The weight decay.
  POSENC_OPTIMIZER_ARG(double, weight_decay) = 0.0;
  /// Uses Nesterov momentum, which requires a momentum and no dampening.
  POSENC_OPTIMIZER_ARG(bool, nesterov) = false;

 private:
  friend struct train::OptionsAccess;
};

/// Stochastic gradient descent in a single pass, by ATen's fused kernels (CPU and CUDA):
///
///     g = grad + weight_decay p;  b = momentum b + (1 - dampening) g, at first b = g
///     p = p - lr b, or p - lr (g + momentum b) with nesterov
///
/// Bit-identical to Python's torch.optim.SGD(fused=True) on the same machine; for strides see
/// FusedAdam. A sparse gradient updates only its own rows, p[i] -= lr g[i], bit-identical to
/// Python's SGD, whose fused version does not accept sparse gradients. With momentum all rows
/// change, the step costs as much as a dense one, and the last bits may differ from Python's.
///
/// ```cpp
/// posenc::TokenEmbedding model(100, 8);
/// posenc::FusedSGD sgd(model->parameters(), posenc::FusedSGDOptions(0.1).momentum(0.9));
/// model->forward(torch::tensor({5, 6})).sum().backward();
/// sgd.step();
/// ```
///
/// Errors: those of OptimizerBase; weight_decay with a sparse gradient.
class FusedSGD : public OptimizerBase<FusedSGDOptions, torch::optim::SGDParamState> {
 public:
  using OptimizerBase::OptimizerBase;

 private:
  void step_group(const FusedSGDOptions& options, std::vector<Entry>& entries) override;
};

}  // namespace posenc
