#pragma once

#include <torch/optim/adam.h>

#include <vector>

#include "posenc/export.h"
#include "posenc/train/optimizer.h"

namespace posenc POSENC_EXPORT {

/// Options of FusedAdam and FusedAdamW.
template <typename Derived>
class AdamOptionsBase : public MomentsOptions<Derived> {
 public:
  /// The weight decay.
  POSENC_OPTIMIZER_ARG(double, weight_decay) = 0.0;
  /// Uses the maximum of the second moments so far.
  POSENC_OPTIMIZER_ARG(bool, amsgrad) = false;

 public:
  /// The gradients of the group are sparse, as from an embedding with sparse(true), and are stepped
  /// as SparseAdam does, with neither weight_decay nor amsgrad. A property of the group: it is
  /// neither taken from the optimiser's options nor saved.
  Derived& sparse(bool value) {
    sparse_ = value;
    return static_cast<Derived&>(*this);
  }
  /// Whether the gradients are sparse.
  bool sparse() const noexcept { return sparse_; }

 private:
  friend struct train::OptionsAccess;
  bool sparse_ = false;
};

/// Options of FusedAdam.
struct FusedAdamOptions : AdamOptionsBase<FusedAdamOptions> {
  FusedAdamOptions() = default;
  /// The default options with this learning rate.
  FusedAdamOptions(double lr) { this->lr(lr); }  // NOLINT: implicit by design
};

/// Options of FusedAdamW. Here weight_decay is 0.01 unless set.
struct FusedAdamWOptions : AdamOptionsBase<FusedAdamWOptions> {
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
/// ```cpp
/// posenc::TokenEmbedding model(100, 8);
/// posenc::FusedAdam adam(model->parameters(), posenc::FusedAdamOptions(1e-3));
/// model->forward(torch::tensor({5, 6})).sum().backward();
/// adam.step();
/// ```
///
/// A model with an embedding of sparse gradients beside dense layers has one optimiser with two
/// groups:
/// ```cpp
/// torch::nn::Embedding table(torch::nn::EmbeddingOptions(9, 4).sparse(true));
/// torch::nn::Linear layer(4, 2);
/// auto rows = std::make_unique<posenc::FusedAdamOptions>();
/// rows->sparse(true);
/// std::vector<torch::optim::OptimizerParamGroup> groups;
/// groups.emplace_back(table->parameters(), std::move(rows));
/// groups.emplace_back(layer->parameters());
/// posenc::FusedAdam adam(groups, posenc::FusedAdamOptions(1e-3));
/// ```
///
/// Errors: those of OptimizerBase; sparse gradients in a group without sparse(true), dense ones in
/// a group with it.
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
