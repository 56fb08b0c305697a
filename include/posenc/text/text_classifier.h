#pragma once

#include <torch/types.h>

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/export.h"
#include "posenc/models/cross_encoder_folder.h"
#include "posenc/models/frozen_classifier.h"
#include "posenc/text/text_labels.h"
#include "posenc/tokenizers/tensors.h"

namespace posenc POSENC_EXPORT {
namespace text {
struct TextClassifierParts;
}  // namespace text

/// Turns texts into labels, as the model in a folder of transformers does with its head: its
/// tokenizer, its encoder and its head, frozen. Whatever the batch, a text has the labels and
/// scores that it has alone, except for rounding. A text that is too long for the model is cut, and
/// the options' `on_truncated` tells which were.
///
/// ```cpp
/// auto model = posenc::load_text_classifier("models/bert-emotions");
/// auto labels = model.classify({"What a day", "Oh no"});
/// auto best = labels[0][0].label;  // of the first text
/// ```
///
/// Each function is that of one kind of head, kind(); the others are errors. No texts give no
/// labels. Any number of threads may use one object; copies refer to the same model.
///
/// Errors: those of Tokenizer and FrozenClassifier; c10::ValueError for a function of another kind
/// of head, a prompt that the folder does not have, options out of range, and a text without
/// tokens where its head needs one.
///
/// Source: the pipelines of transformers 5.23 and `CrossEncoder` of sentence-transformers 6.2, in
/// float32; for answers the pipeline of transformers 4.57, the last that had one.
class TextClassifier {
 public:
  /// The labels of each text with their scores, best first. Kind::Sequence.
  std::vector<std::vector<LabelScore>> classify(const std::vector<std::string>& texts,
                                                const TextClassifyOptions& options = {}) const;
  /// The same for pairs of texts; an empty second text is one too.
  std::vector<std::vector<LabelScore>> classify_pairs(
      const std::vector<std::pair<std::string, std::string>>& pairs,
      const TextClassifyOptions& options = {}) const;
  /// The scores (N, labels) of texts, float32, in the order of labels(). Kind::Sequence.
  torch::Tensor scores(const std::vector<std::string>& texts,
                       const TextClassifyOptions& options = {}) const;
  /// The same for pairs of texts: what a cross-encoder ranks by.
  torch::Tensor pair_scores(const std::vector<std::pair<std::string, std::string>>& pairs,
                            const TextClassifyOptions& options = {}) const;
  /// The probabilities (C) of the choices that may follow a text. Kind::Choice.
  torch::Tensor choose(const std::string& text, const std::vector<std::string>& choices) const;
  /// The labels of the tokens of each text, in their order. Kind::Token.
  std::vector<std::vector<TokenLabel>> label_tokens(const std::vector<std::string>& texts,
                                                    const TokenLabelOptions& options = {}) const;
  /// The parts of a context that answer a question, best first; a long context is read in windows,
  /// and equal answers count as one. Kind::Question.
  std::vector<Answer> answer(const std::string& question, const std::string& context,
                             const AnswerOptions& options = {}) const;
  /// For each text, for each of its masks, the most probable tokens. Kind::Masked.
  std::vector<std::vector<std::vector<MaskedToken>>> fill(
      const std::vector<std::string>& texts, const FillMaskOptions& options = {}) const;

  /// What the head is for.
  head::Kind kind() const;
  /// The names of the labels; none for Kind::Question, Masked and Choice.
  const std::vector<std::string>& labels() const;
  /// Most tokens of a text; nothing: there is no limit.
  std::optional<int64_t> max_seq_length() const;
  /// What the folder says.
  const CrossEncoderFolder& folder() const;
  /// The model.
  const FrozenClassifier& model() const;
  /// The tokenizer.
  const Tokenizer& tokenizer() const;

 private:
  friend TextClassifier load_text_classifier(const std::string& folder,
                                             const FreezeOptions& options, const LoadOptions& load,
                                             std::optional<head::Kind> kind);
  explicit TextClassifier(std::shared_ptr<const text::TextClassifierParts> parts)
      : parts_(std::move(parts)) {}

  std::shared_ptr<const text::TextClassifierParts> parts_;
};

/// Loads a model with a head, and its tokenizer, from a folder of transformers, or a CrossEncoder
/// of sentence-transformers. `load` are the options of load_classifier(); `kind` is that of
/// `architectures` in config.json unless it is given.
///
/// Errors: those of read_cross_encoder_folder(), load_classifier(), freeze() and
/// Tokenizer::from_folder(); c10::ValueError for a head of images.
TextClassifier load_text_classifier(const std::string& folder, const FreezeOptions& options = {},
                                    const LoadOptions& load = {},
                                    std::optional<head::Kind> kind = std::nullopt);

/// Prints the class and its main options on one line.
std::ostream& operator<<(std::ostream& stream, const TextClassifier& model);

}  // namespace posenc
