#pragma once

#include <torch/nn/pimpl.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/models/encoder.h"
#include "posenc/models/encoder_head.h"
#include "posenc/weights/load.h"

namespace posenc POSENC_EXPORT {

namespace head {

/// What a model's logits mean for probabilities: `problem_type` of config.json.
enum class Problem {
  SingleLabel,  ///< one label is right: softmax
  MultiLabel,   ///< any number of labels is right: the sigmoid of each
  Regression,   ///< the logits are the values
};

}  // namespace head

/// Options of Classifier.
struct ClassifierOptions {
  /// An encoder with a head of that kind.
  ClassifierOptions(EncoderOptions encoder, head::Kind kind, EncoderHeadOptions head)
      : encoder_(std::move(encoder)), kind_(kind), head_(std::move(head)) {}

  /// The encoder.
  TORCH_ARG(EncoderOptions, encoder);
  /// What the head is for.
  TORCH_ARG(head::Kind, kind);
  /// The head.
  TORCH_ARG(EncoderHeadOptions, head);
  /// The name of each output of Kind::Sequence, Token and Image: `id2label` of config.json, or
  /// `LABEL_0`, `LABEL_1`, ...; empty for other kinds.
  TORCH_ARG(std::vector<std::string>, labels);
  /// `problem_type` of config.json; nothing if it has none: one label is then MultiLabel, and
  /// several are SingleLabel.
  TORCH_ARG(std::optional<head::Problem>, problem) = std::nullopt;

  POSENC_FIELDS(ClassifierOptions, encoder_, head_);
  POSENC_TRAINING_FIELDS(kind_, labels_, problem_);
};

/// The result of a Classifier.
struct ClassifierOutput {
  EncoderOutput encoder;  ///< that of the encoder
  torch::Tensor logits;   ///< (B, labels); (B, L, labels); (B, L, 2): start, end; or (B, L, V)
};

/// An encoder with a head on it: labels for sequences, tokens or images, answers to questions, and
/// words for masks. load_classifier() makes one from a folder; freeze() makes a faster one for
/// inference.
///
/// ids: (B, L), or pixel_values: (B, C, H, W)  ->  ClassifierOutput.
///
/// Keys: `encoder.*` (Encoder) and `head.*` (EncoderHead). A tied head uses the encoder's table of
/// tokens, which gets its gradient too.
///
/// Errors: those of Encoder and EncoderHead; c10::ValueError for options that contradict each
/// other.
///
/// Source: `BertForSequenceClassification` and similar models in transformers 5.23.
class ClassifierImpl : public Cloneable<ClassifierImpl> {
 public:
  /// A module with the given options.
  explicit ClassifierImpl(ClassifierOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Encodes a batch, and computes its logits.
  ClassifierOutput forward(const torch::Tensor& input, const EncoderInputs& inputs = {});
  /// The weight of a tied head, (V, E): the encoder's table of tokens. Undefined without ties.
  torch::Tensor table() const;

  ClassifierOptions options;  ///< the options given to the constructor
  Encoder encoder{nullptr};   ///< the encoder
  EncoderHead head{nullptr};  ///< the head

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(EncoderInputs())})
};

TORCH_MODULE(Classifier);

/// The probabilities that the pipelines for classification compute of logits
/// (..., labels): softmax, sigmoid, or the logits themselves (ClassifierOptions::problem).
torch::Tensor class_probabilities(const ClassifierOptions& options, const torch::Tensor& logits);

/// The heads that load_classifier() can load for a model type; none for one that it does not know.
std::vector<head::Kind> encoder_head_kinds(const std::string& model_type);

/// Loads an encoder with its head from a folder that Hugging Face's save_pretrained() wrote, in
/// eval mode, as load_encoder() loads the encoder alone.
///
/// ```cpp
/// auto model = posenc::load_classifier("models/bert-emotions");
/// auto logits = model->forward(torch::tensor({{101, 7592, 2088, 102}})).logits;
/// auto best = model->options.labels().at(logits.argmax(-1).item<int64_t>());
/// ```
///
/// `kind` is read from `architectures` in config.json unless it is given. Tensors of the head have
/// their names in the file, after the prefix of `options`, and those of the encoder may have the
/// prefix of models with a head or none. The output layer for masks is tied unless the file has
/// another one. For Kind::Image, of a pair such as CLIP the encoder of images is loaded.
///
/// Errors: those of load_encoder(), which ignores heads; c10::ValueError for a model type without
/// such a head, for `architectures` that name none, and for labels whose number is not that of the
/// head's outputs; WeightsError for a head whose tensors are not in the file.
Classifier load_classifier(const std::string& folder, std::optional<head::Kind> kind = std::nullopt,
                           const LoadOptions& options = {});

}  // namespace posenc
