#pragma once

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>

#include "posenc/core/cloneable.h"
#include "posenc/models/sentence_stage.h"
#include "posenc/positions/nn/layer_norm.h"

namespace posenc {

/// The weights of a stage, by the names that they have in a file.
class StageModule : public Cloneable<StageModule> {
 public:
  explicit StageModule(sentence::Stage stage);

  /// Whether a stage has weights.
  static bool is_needed(const sentence::Stage& stage);

  void reset() override;
  /// Draws new initial weights, as sentence-transformers does.
  void reset_parameters();

  torch::nn::Linear linear{nullptr}, residual{nullptr};  ///< of Dense
  LayerNorm norm{nullptr};                               ///< of LayerNorm
  at::Tensor layer_weights;                              ///< of WeightedLayerPooling
  at::Tensor word_weights;                               ///< of WordWeights, (V, 1)
  torch::nn::ModuleList convs{nullptr};                  ///< of CNN

 private:
  struct Register;

  sentence::Stage stage_;
};

}  // namespace posenc
