#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>

#include <cstddef>
#include <cstdint>

#include "posenc/core/cloneable.h"
#include "posenc/models/sentence_stage.h"
#include "posenc/positions/nn/layer_norm.h"

namespace posenc {

struct SentenceStagesOptions;

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

/// Tokens (B, L, D), which of them are real, and their ids; all but the tokens may be undefined.
struct ConvolvedTokens {
  at::Tensor tokens, mask, ids;
};

/// The tokens after the convolutions of a CNN, `convs`. Those of each sequence are moved to its
/// beginning and followed by zeros, as its padding would be, and the mask is of what they become.
/// Throws c10::ValueError, naming SentenceStages and the stage's number, for sequences that are
/// shorter than a kernel and for convolutions that give different numbers of rows.
ConvolvedTokens convolved(const torch::nn::ModuleListImpl& convs, const ConvolvedTokens& given,
                          std::size_t number);

/// Widths of what the stages make; zero: there is no such feature.
struct StageWidths {
  int64_t tokens = 0, sentence = 0;

  int64_t& of(sentence::Feature feature) {
    return feature == sentence::Feature::Tokens ? tokens : sentence;
  }
};

/// The widths after all stages. Throws c10::ValueError, naming SentenceStages, for a stage that
/// reads what no stage has made, or something of another width.
StageWidths widths_after(const SentenceStagesOptions& options);

}  // namespace posenc
