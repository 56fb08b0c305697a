#pragma once

#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include "posenc/core/cloneable.h"

namespace posenc {

/// Hidden states to logits: x weight^T + bias, where the weight may be an embedding's.
///
/// x: (..., D)  ->  (..., V). Keys: `weight` (V, D), unless tied, and `bias` (V); initialised as
/// torch.nn.Linear. Source: `final_layer` of notebook 03's `Transformer`.
class OutputProjectionImpl : public Cloneable<OutputProjectionImpl> {
 public:
  OutputProjectionImpl(int64_t d_model, int64_t vocab_size);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor forward(const torch::Tensor& x);

  /// From now on the weight is that of `embedding`, which another module registers; the own one is
  /// dropped. A clone reads the same embedding: whoever clones both ties them again.
  void tie(const torch::nn::Embedding& embedding);

  torch::Tensor weight;  ///< undefined when tied
  torch::Tensor bias;

 private:
  int64_t d_model_, vocab_size_;
  torch::nn::Embedding embedding_{nullptr};
};

TORCH_MODULE(OutputProjection);

}  // namespace posenc
