#pragma once

#include <torch/optim/adam.h>

#include <tuple>
#include <vector>

#include "posenc/train/optimizer.h"

namespace posenc {

/// The options of FusedAdam and FusedAdamW, by PyTorch's names.
template <typename Derived>
class AdamOptionsOf : public OptimizerOptions<Derived> {
 public:
  using Betas = std::tuple<double, double>;
  POSENC_OPTIMIZER_ARG(double, lr) = 1e-3;
  POSENC_OPTIMIZER_ARG(Betas, betas) = Betas(0.9, 0.999);
  POSENC_OPTIMIZER_ARG(double, eps) = 1e-8;
  POSENC_OPTIMIZER_ARG(double, weight_decay) = 0.0;
  POSENC_OPTIMIZER_ARG(bool, amsgrad) = false;
  /// Maximize the objective instead of minimizing it.
  POSENC_OPTIMIZER_ARG(bool, maximize) = false;

 public:
  void check() const;
  /// Why a gradient is refused; nullptr where it is accepted.
  const char* refusal(const torch::Tensor& gradient) const;
  /// Calls visit(name, pointer to member) for every option.
  template <typename Visit>
  static void fields(Visit&& visit) {
    visit("lr", &AdamOptionsOf::lr_);
    visit("betas", &AdamOptionsOf::betas_);
    visit("eps", &AdamOptionsOf::eps_);
    visit("weight_decay", &AdamOptionsOf::weight_decay_);
    visit("amsgrad", &AdamOptionsOf::amsgrad_);
    visit("maximize", &AdamOptionsOf::maximize_);
  }
};

struct FusedAdamOptions : AdamOptionsOf<FusedAdamOptions> {
  static constexpr const char* kOptimizer = "FusedAdam";
  static constexpr const char* kRule = "Adam";
  FusedAdamOptions() = default;
  FusedAdamOptions(double lr) { this->lr(lr); }  // NOLINT: a learning rate is options
};

/// weight_decay is 0.01 unless set.
struct FusedAdamWOptions : AdamOptionsOf<FusedAdamWOptions> {
  static constexpr const char* kOptimizer = "FusedAdamW";
  static constexpr const char* kRule = "AdamW";
  FusedAdamWOptions() { weight_decay_ = 1e-2; }
  FusedAdamWOptions(double lr) : FusedAdamWOptions() { this->lr(lr); }  // NOLINT: as above
};

template <typename Options>
class FusedAdamOf : public OptimizerOf<Options, torch::optim::AdamParamState> {
 public:
  using OptimizerOf<Options, torch::optim::AdamParamState>::OptimizerOf;

 private:
  using Entry = typename OptimizerOf<Options, torch::optim::AdamParamState>::Entry;
  void step_group(const Options& options, std::vector<Entry>& entries) override;
};

/// Adam in one pass over parameter, gradient and state, by ATen's fused kernels (CPU and CUDA):
///
///     g = grad + weight_decay p;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
///     p = p - lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)
///
/// The bits of Python's torch.optim.Adam(fused=True) on the same machine; float32, float64,
/// bfloat16, float16. Strides are respected where Python's mixes elements up: a gradient that lies
/// in memory in another order than its parameter is copied into that order first.
/// Errors: OptimizerOf; a sparse gradient (SparseAdam takes those).
/// Source: Kingma and Ba 2015; amsgrad: Reddi et al. 2018.
class FusedAdam : public FusedAdamOf<FusedAdamOptions> {
 public:
  using FusedAdamOf<FusedAdamOptions>::FusedAdamOf;
};

/// Adam whose weight decay does not pass through the moments: p = p - lr weight_decay p first.
/// The bits of Python's torch.optim.AdamW(fused=True). Otherwise as FusedAdam.
/// Source: Loshchilov and Hutter 2019.
class FusedAdamW : public FusedAdamOf<FusedAdamWOptions> {
 public:
  using FusedAdamOf<FusedAdamWOptions>::FusedAdamOf;
};

}  // namespace posenc
