#pragma once

#include <torch/optim/adam.h>

#include <tuple>
#include <vector>

#include "posenc/train/optimizer.h"

namespace posenc {

/// By PyTorch's names.
class SparseAdamOptions : public OptimizerOptions<SparseAdamOptions> {
 public:
  static constexpr const char* kOptimizer = "SparseAdam";
  static constexpr const char* kRule = "SparseAdam";
  SparseAdamOptions() = default;
  SparseAdamOptions(double lr) { this->lr(lr); }  // NOLINT: a learning rate is options
  using Betas = std::tuple<double, double>;

 private:
  using Derived = SparseAdamOptions;
  POSENC_OPTIMIZER_ARG(double, lr) = 1e-3;
  POSENC_OPTIMIZER_ARG(Betas, betas) = Betas(0.9, 0.999);
  POSENC_OPTIMIZER_ARG(double, eps) = 1e-8;
  /// Maximize the objective instead of minimizing it.
  POSENC_OPTIMIZER_ARG(bool, maximize) = false;

 public:
  void check() const;
  /// Why a gradient is refused; nullptr where it is accepted.
  const char* refusal(const torch::Tensor& gradient) const;
  /// Calls visit(name, pointer to member) for every option.
  template <typename Visit>
  static void fields(Visit&& visit) {
    visit("lr", &SparseAdamOptions::lr_);
    visit("betas", &SparseAdamOptions::betas_);
    visit("eps", &SparseAdamOptions::eps_);
    visit("maximize", &SparseAdamOptions::maximize_);
  }
};

/// Adam for embedding tables with sparse gradients: moments and weights of a row move only when the
/// row is in the gradient; the count of steps is the parameter's. With g the row's gradient:
///
///     m += (1 - b1) (g - m);  v += (1 - b2) (g^2 - v)
///     p -= lr sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + eps)
///
/// The bits of Python's torch.optim.SparseAdam on the same machine. Gradients are sparse in their
/// first dimension, coalesced or not. Errors: OptimizerOf; eps of 0; a dense gradient.
class SparseAdam : public OptimizerOf<SparseAdamOptions, torch::optim::AdamParamState> {
 public:
  using OptimizerOf::OptimizerOf;

 private:
  void step_group(const SparseAdamOptions& options, std::vector<Entry>& entries) override;
};

}  // namespace posenc
