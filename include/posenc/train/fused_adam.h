#pragma once

#include <torch/optim/adam.h>

#include <tuple>
#include <vector>

#include "posenc/export.h"
#include "posenc/train/optimizer.h"

namespace posenc POSENC_EXPORT {

/// Options of FusedAdam and FusedAdamW, with PyTorch's names.
template <typename Derived>
class AdamOptionsBase : public OptimizerOptions<Derived> {
 public:
  /// b1 and b2.
  using Betas = std::tuple<double, double>;
  /// The learning rate.
  POSENC_OPTIMIZER_ARG(double, lr) = 1e-3;
  /// The decay rates of the two moments.
  POSENC_OPTIMIZER_ARG(Betas, betas) = Betas(0.9, 0.999);
  /// Added to the denominator.
  POSENC_OPTIMIZER_ARG(double, eps) = 1e-8;
  /// The weight decay.
  POSENC_OPTIMIZER_ARG(double, weight_decay) = 0.0;
  /// Uses the maximum of the second moments so far.
  POSENC_OPTIMIZER_ARG(bool, amsgrad) = false;
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
    visit("lr", &AdamOptionsBase::lr_);
    visit("betas", &AdamOptionsBase::betas_);
    visit("eps", &AdamOptionsBase::eps_);
    visit("weight_decay", &AdamOptionsBase::weight_decay_);
    visit("amsgrad", &AdamOptionsBase::amsgrad_);
    visit("maximize", &AdamOptionsBase::maximize_);
  }
};

/// Options of FusedAdam.
struct FusedAdamOptions : AdamOptionsBase<FusedAdamOptions> {
  static constexpr const char* kOptimizer = "FusedAdam";  ///< for messages
  static constexpr const char* kRule = "Adam";            ///< CheckpointableOptimizer::rule()
  FusedAdamOptions() = default;
  /// The default options with this learning rate.
  FusedAdamOptions(double lr) { this->lr(lr); }  // NOLINT: a learning rate is options
};

/// Options of FusedAdamW. Here weight_decay is 0.01 unless set.
struct FusedAdamWOptions : AdamOptionsBase<FusedAdamWOptions> {
  static constexpr const char* kOptimizer = "FusedAdamW";  ///< for messages
  static constexpr const char* kRule = "AdamW";            ///< CheckpointableOptimizer::rule()
  FusedAdamWOptions() { weight_decay_ = 1e-2; }
  /// The default options with this learning rate.
  FusedAdamWOptions(double lr) : FusedAdamWOptions() { this->lr(lr); }  // NOLINT: as above
};

/// The implementation of FusedAdam and FusedAdamW.
template <typename Options>
class FusedAdamBase : public OptimizerBase<Options, torch::optim::AdamParamState> {
 public:
  using OptimizerBase<Options, torch::optim::AdamParamState>::OptimizerBase;

 private:
  using Entry = typename OptimizerBase<Options, torch::optim::AdamParamState>::Entry;
  void step_group(const Options& options, std::vector<Entry>& entries) override;
};

/// Adam in a single pass over parameter, gradient and state, by ATen's fused kernels (CPU and
/// CUDA):
///
///     g = grad + weight_decay p;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
///     p = p - lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)
///
/// Bit-identical to Python's torch.optim.Adam(fused=True) on the same machine, for float32,
/// float64, bfloat16 and float16. A gradient whose memory layout differs from its parameter's is
/// first copied to that layout; Python's optimiser mixes up the elements in this case.
///
/// Errors: those of OptimizerBase; sparse gradients, for which see SparseAdam.
///
/// Source: Kingma and Ba 2015; amsgrad: Reddi et al. 2018.
class FusedAdam : public FusedAdamBase<FusedAdamOptions> {
 public:
  using FusedAdamBase<FusedAdamOptions>::FusedAdamBase;
};

/// Adam with decoupled weight decay, p = p - lr weight_decay p before the step. Bit-identical to
/// Python's torch.optim.AdamW(fused=True); otherwise like FusedAdam.
///
/// Source: Loshchilov and Hutter 2019.
class FusedAdamW : public FusedAdamBase<FusedAdamWOptions> {
 public:
  using FusedAdamBase<FusedAdamWOptions>::FusedAdamBase;
};

}  // namespace posenc
