#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <optional>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/models/encoder.h"
#include "posenc/positions/nn/layer_norm.h"
#include "posenc/transformer/functional/activation.h"

namespace posenc POSENC_EXPORT {

namespace head {

/// What a head is for.
enum class Kind {
  Sequence,  ///< a label for each sequence: `...ForSequenceClassification`
  Token,     ///< a label for each token: `...ForTokenClassification`
  Question,  ///< the first and the last token of an answer: `...ForQuestionAnswering`
  Masked,    ///< the token of each mask: `...ForMaskedLM`
  Image,     ///< a label for each image: `...ForImageClassification`
  /// A score for each sequence, of which those of one question are compared: the logits (N, 1) of N
  /// sequences are those of transformers' (B, choices) as a column: `...ForMultipleChoice`.
  Choice,
};

/// What a head takes of the encoder's output.
enum class Rows {
  Tokens,        ///< the last hidden state of each token
  Pooled,        ///< the pooled output
  Mean,          ///< the mean of the last hidden state over the tokens that are not masked
  MeanOfLogits,  ///< that of each token; the mean is taken of the logits: EuroBERT
  MeanOfRows,    ///< the mean of the rows from first_row on, masked or not: CLIP's images, XLM
  FirstAndMean,  ///< the first row, followed by that mean: DINOv2
};

}  // namespace head

/// Options of EncoderHead. load_classifier() has those of real models.
struct EncoderHeadOptions {
  /// A head that takes rows of width `d_model` to `outputs` logits.
  EncoderHeadOptions(int64_t d_model, int64_t outputs) : d_model_(d_model), outputs_(outputs) {}

  /// Width D of what the head takes: of a row, or of two with FirstAndMean.
  TORCH_ARG(int64_t, d_model);
  /// Number of logits: labels; 2 for questions; the size V of the vocabulary for masks.
  TORCH_ARG(int64_t, outputs);
  /// What the head takes.
  TORCH_ARG(head::Rows, rows) = head::Rows::Tokens;
  /// The first row of those whose mean is taken by MeanOfRows and FirstAndMean; those before it are
  /// class tokens and registers.
  TORCH_ARG(int64_t, first_row) = 0;
  /// Width E of the linear layer before the output; no such layer unless set.
  TORCH_ARG(std::optional<int64_t>, dense) = std::nullopt;
  /// Whether that layer has a bias.
  TORCH_ARG(bool, dense_bias) = true;
  /// Width of another one after its activation, with the same bias and activation; none unless set.
  /// Needs dense. UltraBERT.
  TORCH_ARG(std::optional<int64_t>, dense2) = std::nullopt;
  /// What follows each of them.
  TORCH_ARG(Activation, activation) = Activation::Identity;
  /// Epsilon of the norm before the output; no norm unless set.
  TORCH_ARG(std::optional<double>, norm) = std::nullopt;
  /// Whether the norm has a bias.
  TORCH_ARG(bool, norm_bias) = true;
  /// Whether the output layer has a bias.
  TORCH_ARG(bool, bias) = true;
  /// The output layer's weight is the table (V, E) of the encoder's tokens, given to forward().
  TORCH_ARG(bool, tied) = false;
  /// Columns of the output layer's weight that follow those of `weight` or the table, as a
  /// parameter of their own: MobileBERT, whose table is narrower than the encoder's output.
  TORCH_ARG(int64_t, columns_beside_table) = 0;
  /// What the logits go through: `summary_activation` of XLM.
  TORCH_ARG(Activation, output_activation) = Activation::Identity;

  POSENC_FIELDS(EncoderHeadOptions, d_model_, outputs_, rows_, first_row_, dense_, dense_bias_,
                dense2_, activation_, norm_, norm_bias_, bias_, tied_, columns_beside_table_,
                output_activation_);
};

/// What turns the output of an encoder into logits: y = activation(dense(rows)), with dense2 y =
/// activation(dense2(y)), normalised, and logits = output_activation(y weight^T + bias). Classifier
/// has an encoder and one of these.
///
/// Rows (B, L, D) or (B, D)  ->  logits (B, L, outputs) or (B, outputs).
///
/// ```cpp
/// posenc::EncoderHead head(posenc::EncoderHeadOptions(8, 3).rows(posenc::head::Rows::Mean));
/// posenc::EncoderOutput out;
/// out.last_hidden_state = torch::randn({2, 5, 8});
/// torch::Tensor logits = head->forward(out);  // (2, 3)
/// ```
///
/// Keys: `dense.weight`, `dense.bias`, `dense2.*`, `norm.weight`, `norm.bias`, `weight` unless
/// tied, `weight_beside_table` with columns_beside_table, `bias`, as far as the options require
/// them.
///
/// Errors: c10::ValueError for bad options, an output without the rows that the head takes, a
/// missing table, and one of another shape.
///
/// Source: the `...Head` classes of transformers 5.23, such as `RobertaClassificationHead`.
class EncoderHeadImpl : public Cloneable<EncoderHeadImpl> {
 public:
  /// A module with the given options.
  explicit EncoderHeadImpl(EncoderHeadOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// The logits of an encoder's output. `attention_mask` is the encoder's, (B, L); without it all
  /// tokens count. `table`, (V, E), is needed if the head is tied.
  torch::Tensor forward(const EncoderOutput& output, const torch::Tensor& attention_mask = {},
                        const torch::Tensor& table = {});
  /// The logits of rows (..., D) that have been taken already.
  torch::Tensor logits(const torch::Tensor& rows, const torch::Tensor& table = {});

  EncoderHeadOptions options;         ///< the options given to the constructor
  torch::nn::Linear dense{nullptr};   ///< (E, D)
  torch::nn::Linear dense2{nullptr};  ///< (dense2, E), which is then E
  LayerNorm norm{nullptr};            ///< of width E
  torch::Tensor weight;               ///< (outputs, E - C), undefined if tied; C is 0 or
  torch::Tensor weight_beside_table;  ///< (outputs, C), with columns_beside_table
  torch::Tensor bias;                 ///< (outputs), undefined with bias(false)

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(torch::Tensor())},
                                  {2, torch::nn::AnyValue(torch::Tensor())})
};

TORCH_MODULE(EncoderHead);

}  // namespace posenc
