#pragma once

#include <torch/optim/adam.h>

#include <tuple>
#include <vector>

#include "posenc/export.h"
#include "posenc/train/optimizer.h"

namespace posenc POSENC_EXPORT {

/// Options of SparseAdam, with PyTorch's names.
class SparseAdamOptions : public OptimizerOptions<SparseAdamOptions> {
 public:
  static constexpr const char* kOptimizer = "SparseAdam";  ///< for messages
  static constexpr const char* kRule = "SparseAdam";       ///< CheckpointableOptimizer::rule()
  SparseAdamOptions() = default;
  /// The default options with this learning rate.
  SparseAdamOptions(double lr) { this->lr(lr); }  // NOLINT: a learning rate is options
  /// b1 and b2.
  using Betas = std::tuple<double, double>;

 private:
  using Derived = SparseAdamOptions;
  /// The learning rate.
  POSENC_OPTIMIZER_ARG(double, lr) = 1e-3;
  /// The decay rates of the two moments.
  POSENC_OPTIMIZER_ARG(Betas, betas) = Betas(0.9, 0.999);
  /// Added to the denominator.
  POSENC_OPTIMIZER_ARG(double, eps) = 1e-8;
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
    visit("lr", &SparseAdamOptions::lr_);
    visit("betas", &SparseAdamOptions::betas_);
    visit("eps", &SparseAdamOptions::eps_);
    visit("maximize", &SparseAdamOptions::maximize_);
  }
};

/// Adam for embedding tables with sparse gradients. The moments and weights of a row change only if
/// the row is in the gradient; steps t are counted per parameter. With g the row's gradient:
///
///     m += (1 - b1) (g - m);  v += (1 - b2) (g^2 - v)
///     p -= lr sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + eps)
///
/// Bit-identical to Python's torch.optim.SparseAdam on the same machine. Gradients are sparse in
/// their first dimension and need not be coalesced.
///
/// Errors: those of OptimizerBase; an eps of 0; dense gradients.
class SparseAdam : public OptimizerBase<SparseAdamOptions, torch::optim::AdamParamState> {
 public:
  using OptimizerBase::OptimizerBase;

 private:
  void step_group(const SparseAdamOptions& options, std::vector<Entry>& entries) override;
};

}  // namespace posenc
