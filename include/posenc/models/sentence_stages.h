#pragma once

#include <torch/nn/pimpl.h>

#include <optional>
#include <utility>
#include <vector>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/models/functional/multi_vectors.h"
#include "posenc/models/sentence_stage.h"

namespace posenc POSENC_EXPORT {

/// Options of SentenceStages; load_sentence_stages() has those of real models.
struct SentenceStagesOptions {
  /// Stages after an encoder of width `d_model`.
  explicit SentenceStagesOptions(int64_t d_model) : d_model_(d_model) {}

  /// Width D of the encoder's last hidden state, of a head for masked words the number of its
  /// logits; 0 for stages that are given ids alone, of which the first is a SparseStaticEmbedding.
  TORCH_ARG(int64_t, d_model);
  /// The stages in order.
  TORCH_ARG(std::vector<sentence::Stage>, stages);
  /// Whether the encoder already gives sentences (B, D), as static embeddings do.
  TORCH_ARG(bool, takes_sentences) = false;
  /// What is returned: of a model with a vector for each token, Tokens.
  TORCH_ARG(sentence::Feature, result) = sentence::Feature::Sentence;

  POSENC_FIELDS(SentenceStagesOptions, d_model_, stages_, takes_sentences_, result_);
};

/// The stages of a model of sentence-transformers after its encoder: what makes a sentence vector
/// of the rows of its tokens.
///
/// hidden: (B, L, D), attention_mask: (B, L)  ->  (B, width()). In half types the result has their
/// dtype.
///
/// ```cpp
/// posenc::SentenceStages stages(posenc::SentenceStagesOptions(8).stages(
///     {posenc::sentence::Pooling{}, posenc::sentence::Normalize{}}));
/// torch::Tensor of_texts = stages->forward(torch::randn({2, 5, 8}));  // (2, 8)
/// ```
///
/// Keys: those of sentence-transformers, where i counts the stages from 1, the encoder being 0:
/// `<i>.linear.weight`, `<i>.linear.bias`, `<i>.residual.weight` of a Dense, `<i>.norm.weight`,
/// `<i>.norm.bias` of a LayerNorm, `<i>.layer_weights` of a WeightedLayerPooling,
/// `<i>.emb_layer.weight`, a buffer (V, 1), of WordWeights, `<i>.convs.<j>.weight`,
/// `<i>.convs.<j>.bias` of a CNN, `<i>.pre_bias`, `<i>.encoder.weight`, `<i>.latent_bias` and the
/// buffer `<i>.stats_last_nonzero` of a SparseAutoEncoder, `<i>.weight` (V) of a
/// SparseStaticEmbedding, and `<i>.weight` (1, D), `<i>.bias` (1) of LexicalWeights.
///
/// Errors: c10::ValueError for widths that do not follow from each other, stages that read what no
/// stage has made, inputs that a stage needs and does not get, and inputs of another shape.
///
/// Source: sentence-transformers 6.2.
class SentenceStagesImpl : public Cloneable<SentenceStagesImpl> {
 public:
  /// A module with the given options.
  explicit SentenceStagesImpl(SentenceStagesOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// The sentence vectors of a batch. The first `prompt_length` real tokens of each sequence are
  /// those of a prompt, which some models do not pool. WordWeights, SparseStaticEmbedding and
  /// LexicalWeights need `input_ids` (B, L), and WeightedLayerPooling `hidden_states`,
  /// EncoderOutput's. `max_active_dims` is in place of the k of a SparseAutoEncoder.
  torch::Tensor forward(const torch::Tensor& hidden, const torch::Tensor& attention_mask = {},
                        int64_t prompt_length = 0, const torch::Tensor& input_ids = {},
                        const std::vector<torch::Tensor>& hidden_states = {},
                        std::optional<int64_t> max_active_dims = std::nullopt);
  /// The vectors of the tokens of a batch, where the result is Tokens: those for which `scored`
  /// (B, L) is nonzero, or attention_mask without a MultiVectorMask. A TokenPooling depends on the
  /// task.
  MultiVectors forward_tokens(const torch::Tensor& hidden, const torch::Tensor& attention_mask,
                              const torch::Tensor& scored, sentence::Task task,
                              const torch::Tensor& input_ids = {},
                              const std::vector<torch::Tensor>& hidden_states = {});
  /// Width of the vectors.
  int64_t width() const;
  /// Whether a stage leaves out the tokens of a prompt.
  bool excludes_prompt() const;
  /// Whether a sequence without tokens has a vector: max and cls pooling have none.
  bool defines_empty() const;
  /// Whether a stage averages the layers of the encoder, whose outputs forward() then needs.
  bool needs_hidden_states() const;

  SentenceStagesOptions options;  ///< the options given to the constructor

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(torch::Tensor())},
                                  {2, torch::nn::AnyValue(int64_t{0})},
                                  {3, torch::nn::AnyValue(torch::Tensor())},
                                  {4, torch::nn::AnyValue(std::vector<torch::Tensor>())},
                                  {5, torch::nn::AnyValue(std::optional<int64_t>())})
};

TORCH_MODULE(SentenceStages);

}  // namespace posenc
