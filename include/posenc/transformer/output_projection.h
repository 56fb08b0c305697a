#pragma once

#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "posenc/core/cloneable.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// The output layer, from hidden states to logits: x weight^T + bias. Its weight may be tied to an
/// embedding's.
///
/// x: (..., D)  ->  (..., V). Initialised like torch.nn.Linear.
///
/// ```cpp
/// posenc::OutputProjection projection(/*d_model=*/32, /*vocab_size=*/100);
/// torch::Tensor logits = projection->forward(torch::randn({2, 5, 32}));  // (2, 5, 100)
/// ```
///
/// Keys: `weight` (V, D), unless tied, and `bias` (V), unless it has none.
///
/// Source: `final_layer` of the reference class `Transformer` in notebooks_ref.
class OutputProjectionImpl : public Cloneable<OutputProjectionImpl> {
 public:
  /// A projection of width D = `d_model` to V = `vocab_size` logits. `has_bias`: whether a bias is
  /// added; `scale`: the factor of x, T5's 1 / sqrt(D).
  OutputProjectionImpl(int64_t d_model, int64_t vocab_size, bool has_bias = true,
                       double scale = 1.0);

  void reset() override;
  /// Draws new initial weights; a tied weight is left alone.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the logits.
  torch::Tensor forward(const torch::Tensor& x);

  /// Uses the weight of `embedding`, which another module registers, and drops this module's own. A
  /// clone uses the same `embedding`: if both modules are cloned, call this again.
  void tie(const torch::nn::Embedding& embedding);

  /// Returns the matrix (V, D) that forward() uses: `weight`, or that of the tied embedding.
  const torch::Tensor& effective_weight() const { return embedding_ ? embedding_->weight : weight; }

  /// The factor of x.
  double scale() const { return scale_; }

  torch::Tensor weight;  ///< undefined if tied
  torch::Tensor bias;    ///< (V), undefined without one

 private:
  int64_t d_model_, vocab_size_;
  bool has_bias_;
  double scale_;
  torch::nn::Embedding embedding_{nullptr};
};

TORCH_MODULE(OutputProjection);

}  // namespace posenc
