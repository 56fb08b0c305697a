#pragma once

#include <iosfwd>
#include <memory>
#include <vector>

#include "posenc/export.h"
#include "posenc/models/classifier.h"
#include "posenc/models/frozen_encoder.h"

namespace posenc POSENC_EXPORT {
namespace inference {
struct FrozenClassifierParts;
struct FrozenClassifierAccess;
}  // namespace inference

/// A Classifier for inference; see FrozenEncoder. The head too is computed for real tokens only.
///
/// ```cpp
/// auto model = posenc::freeze(posenc::load_classifier("models/bert-emotions"));
/// auto ids = torch::tensor({{101, 7592, 2088, 102}, {101, 7592, 102, 0}});
/// auto logits = model.forward(ids, posenc::EncoderInputs().attention_mask(ids.ne(0))).logits;
/// ```
class FrozenClassifier {
 public:
  /// What Classifier returns for a batch in eval mode; rows of masked tokens are zero after the
  /// layers, and so are their logits.
  ///
  /// Errors: those of Classifier and FrozenEncoder.
  ClassifierOutput forward(const torch::Tensor& input, const EncoderInputs& inputs = {}) const;
  /// The logits of rows (N, D) of the encoder's output, for programs that need few of them.
  ///
  /// Errors: c10::TypeError for rows that are not float32; c10::ValueError for another shape.
  torch::Tensor logits(const torch::Tensor& rows) const;
  /// The largest logits (B, outputs) of the rows of each of B sequences: the first lengths[0] rows
  /// are the first sequence's, and -inf stands for one without rows. The logits of all rows are not
  /// in memory: SPLADE's pooling needs no others.
  ///
  /// Errors: those of logits(); c10::ValueError for lengths that do not add up to N.
  torch::Tensor largest_logits(const torch::Tensor& rows,
                               const std::vector<int64_t>& lengths) const;
  /// The encoder below the head.
  const FrozenEncoder& encoder() const;

  /// The options of the source.
  const ClassifierOptions& options() const;
  /// The size of the weights.
  FrozenBytes bytes() const;

 private:
  friend struct inference::FrozenClassifierAccess;
  explicit FrozenClassifier(std::shared_ptr<const inference::FrozenClassifierParts> parts)
      : parts_(std::move(parts)) {}

  std::shared_ptr<const inference::FrozenClassifierParts> parts_;
};

/// Freezes a Classifier, as freeze(const TransformerEncoderImpl&, const FreezeOptions&) does.
///
/// Errors: the same.
FrozenClassifier freeze(const ClassifierImpl& model, const FreezeOptions& options = {});
/// freeze() for the Classifier of a holder.
FrozenClassifier freeze(const Classifier& model, const FreezeOptions& options = {});
/// The same; the holder is empty afterwards, as in freeze(Transformer&&, const FreezeOptions&).
FrozenClassifier freeze(Classifier&& model, const FreezeOptions& options = {});

/// Prints the class and its main options on one line.
std::ostream& operator<<(std::ostream& stream, const FrozenClassifier& model);

}  // namespace posenc
