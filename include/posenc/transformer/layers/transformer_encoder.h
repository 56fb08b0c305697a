#pragma once

#include <torch/nn/modules/container/modulelist.h>

#include <optional>
#include <vector>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/transformer/layers/bottleneck_encoder_layer.h"
#include "posenc/transformer/layers/conformer_encoder_layer.h"
#include "posenc/transformer/layers/relative_embeddings.h"
#include "posenc/transformer/layers/transformer_encoder_layer.h"
#include "posenc/transformer/layers/transformer_xl_positions.h"

namespace posenc POSENC_EXPORT {

/// Options of TransformerEncoder.
struct TransformerEncoderOptions : TransformerStackOptions<TransformerEncoderOptions> {
  using TransformerStackOptions::TransformerStackOptions;

  /// The options of layer i.
  const TransformerLayerOptions& layer_at(size_t i) const {
    return layers().empty() ? layer() : layers().at(i);
  }

  /// The layers in the order in which they run, as indices below num_layers, for models that share
  /// layers (ALBERT); each once unless set.
  TORCH_ARG(std::vector<int64_t>, order) = {};
  /// Probability of skipping a layer in training, in [0, 1): BART's encoder_layerdrop.
  TORCH_ARG(double, layer_dropout) = 0.0;
  /// The options of each of num_layers layers, where they are not the same: windows and rotary
  /// embeddings that alternate, as in ModernBERT. All have the d_model and batch_first of layer(),
  /// whose norm options are those of the final norm, but for final_norm_eps and final_norm_bias.
  /// Every layer has layer() unless set.
  TORCH_ARG(std::vector<TransformerLayerOptions>, layers) = {};
  /// Adds one GridPositionBias to the scores of all layers, by the rows and columns of patches,
  /// with a table for a grid of this size: BEiT. None unless set.
  TORCH_ARG(std::optional<relative::Grid>, grid_bias) = std::nullopt;

  POSENC_FIELDS(TransformerEncoderOptions, layer_, num_layers_, norm_, final_norm_eps_,
                final_norm_bias_, relative_, alibi_, order_, layers_, grid_bias_);
  POSENC_TRAINING_FIELDS(layer_dropout_);
};

/// What TransformerEncoder::forward_with() returns besides the result of the last layer.
struct TransformerEncoderRecord {
  bool output_hidden_states = false;         ///< whether hidden_states are wanted
  bool output_attentions = false;            ///< whether attentions are wanted
  std::vector<torch::Tensor> hidden_states;  ///< x, then the output of each layer, before the norm
  std::vector<torch::Tensor> attentions;     ///< the weights of each layer, (B, H, L, L)
};

/// A stack of encoder layers with an optional final norm.
///
/// x: (B, L, D)  ->  (B, L, D); (L, B, D) with the layers' batch_first(false).
///
/// Each layer draws its own initial weights, whereas torch.nn.TransformerEncoder copies those of
/// one layer. The mask is resolved once for all layers with one window.
///
/// ```cpp
/// posenc::TransformerEncoderLayerOptions layer(/*d_model=*/32, /*num_heads=*/4);
/// posenc::TransformerEncoder encoder(posenc::TransformerEncoderOptions(layer, /*num_layers=*/2));
/// torch::Tensor x = encoder->forward(torch::randn({2, 5, 32}));  // (2, 5, 32)
/// ```
///
/// Keys: `layers.0.*`, `layers.1.*`, ... (TransformerEncoderLayer, or BottleneckEncoderLayer with
/// TransformerLayerOptions::bottleneck, or ConformerEncoderLayer with
/// TransformerLayerOptions::conformer), `norm.*`; with `relative`
/// `relative_attention_bias.weight` (rows, num_heads); with `grid_bias` `grid_position_bias.weight`
/// (GridPositionBias); with `disentangled` `relative_embeddings.*` (RelativeEmbeddings) and, if it
/// has one, `conv.*` (ConvolutionBeside); with `transformer_xl` `shifted_positions.*`
/// (TransformerXLPositions); with `per_layer_input` `per_layer_projection.weight` (num_layers P, D)
/// and `per_layer_norm.*` (P): layer i gets rows i P to (i + 1) P of per_layer_projection(x) /
/// sqrt(D), normalised.
///
/// Errors: those of functional::multihead_attention(); at construction, c10::ValueError for options
/// that exclude each other.
///
/// Source: torch.nn.TransformerEncoder.
class TransformerEncoderImpl : public Cloneable<TransformerEncoderImpl> {
 public:
  /// A module with the given options.
  explicit TransformerEncoderImpl(TransformerEncoderOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the output of the last layer. Layers with a rotary embedding rotate by positions 0, 1,
  /// ... or by `position_ids`, (L) or (B, L).
  torch::Tensor forward(const torch::Tensor& x, const AttentionMask& mask = {},
                        const torch::Tensor& position_ids = {});

  /// forward() that also records what `record` asks for, in the order in which the layers run.
  /// Layers that layer_dropout skips are left out. The rows that `kept_rows` does not have, bool of
  /// the shape of x without D, are zeros after each layer, as padding is in XLM. `segments`, (B,
  /// L), are those of TransformerXLOptions::segments. `grid` has the rows and columns of the
  /// patches in x, after one class token, for grid biases; those of their tables unless given. With
  /// transformer_xl layers the result has the dropout of their output, as in XLNet.
  torch::Tensor forward_with(const torch::Tensor& x, const AttentionMask& mask,
                             TransformerEncoderRecord& record,
                             const torch::Tensor& position_ids = {},
                             const torch::Tensor& kept_rows = {},
                             const torch::Tensor& segments = {},
                             std::optional<relative::Grid> grid = std::nullopt);

  /// Empty caches for step(), one for each time that a layer runs, for `capacity` tokens of `batch`
  /// sequences. Those of layers with a window keep what it leaves (KeyValueCache).
  std::vector<KeyValueCache> make_caches(int64_t batch, int64_t capacity) const;

  /// Causal self-attention of the next tokens x (B, t, D)  ->  (B, t, D), after those in the
  /// caches, which get theirs: what forward() with AttentionMask::causal() returns for these
  /// columns. `mask` and `position_ids` are those of MultiheadAttention::step(); `record` may be
  /// null, and gets no attentions. For inference. An error leaves the caches as they were.
  ///
  /// Errors: c10::ValueError for layers that are not a TransformerEncoderLayer of
  /// Mixing::Attention, a grid bias, and caches of another number or with another window.
  torch::Tensor step(torch::Tensor x, std::vector<KeyValueCache>& caches,
                     const AttentionMask& mask = {}, const torch::Tensor& position_ids = {},
                     TransformerEncoderRecord* record = nullptr);

  TransformerEncoderOptions options;                      ///< the options given to the constructor
  torch::nn::ModuleList layers{nullptr};                  ///< num_layers of them
  TransformerNorm norm{nullptr};                          ///< with .norm(true)
  RelativePositionBias relative_attention_bias{nullptr};  ///< of all layers, with .relative()
  GridPositionBias grid_position_bias{nullptr};           ///< of all layers, with .grid_bias()
  RelativeEmbeddings relative_embeddings{nullptr};  ///< with TransformerLayerOptions::disentangled
  ConvolutionBeside conv{nullptr};                  ///< beside the first layer, if that has one
  torch::nn::Linear per_layer_projection{
      nullptr};                             ///< with TransformerLayerOptions::per_layer_input
  TransformerNorm per_layer_norm{nullptr};  ///< the same
  TransformerXLPositions shifted_positions{
      nullptr};  ///< with TransformerLayerOptions::transformer_xl

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(AttentionMask())},
                                  {2, torch::nn::AnyValue(torch::Tensor())})

 private:
  EncoderLayerBase& layer(size_t i) const;
  TransformerEncoderLayerImpl& causal_layer(size_t i) const;
  torch::Tensor per_layer_inputs(const torch::Tensor& x);
};

TORCH_MODULE(TransformerEncoder);

}  // namespace posenc
