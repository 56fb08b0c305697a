#pragma once

#include <torch/optim/adam.h>

#include <vector>

#include "posenc/export.h"
#include "posenc/train/optimizer.h"

namespace posenc POSENC_EXPORT {

/// Options of SparseAdam.
struct SparseAdamOptions : MomentsOptions<SparseAdamOptions> {
  SparseAdamOptions() = default;
  /// The default options with this learning rate.
  SparseAdamOptions(double lr) { this->lr(lr); }  // NOLINT: implicit by design
};

/// Adam for embedding tables with sparse gradients. The moments and weights of a row change only if
/// the row is in the gradient; steps t are counted per parameter. With g the row's gradient:
///
///     m += (1 - b1) (g - m);  v += (1 - b2) (g^2 - v)
///     p -= lr sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + eps)
///
/// Bit-identical to Python's torch.optim.SparseAdam on the same machine. Gradients are sparse in
/// their first dimension and need not be coalesced: a step waits for a GPU to coalesce them there.
///
/// ```cpp
/// posenc::TokenEmbedding model(posenc::TokenEmbeddingOptions(100, 8).sparse(true));
/// posenc::SparseAdam adam(model->parameters(), posenc::SparseAdamOptions(1e-3));
/// model->forward(torch::tensor({5, 6})).sum().backward();
/// adam.step();
/// ```
///
/// Errors: those of OptimizerBase; an eps of 0; dense gradients.
class SparseAdam : public OptimizerBase<SparseAdamOptions, torch::optim::AdamParamState> {
 public:
  using OptimizerBase::OptimizerBase;

 private:
  void step_group(const SparseAdamOptions& options, std::vector<Entry>& entries) override;
};

}  // namespace posenc
