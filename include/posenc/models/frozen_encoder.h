#pragma once

#include <iosfwd>
#include <memory>

#include "posenc/export.h"
#include "posenc/inference/freeze.h"
#include "posenc/models/encoder.h"

namespace posenc POSENC_EXPORT {
namespace inference {
struct FrozenEncoderParts;
struct FrozenEncoderAccess;
}  // namespace inference

/// An Encoder for inference, embeddings and pooler included; see FrozenTransformerEncoder. In a
/// batch of unequal lengths only the real tokens are computed, so padding costs next to nothing.
///
/// ```cpp
/// auto bert = posenc::freeze(posenc::load_encoder("models/bert-base-uncased"));
/// auto ids = torch::tensor({{101, 7592, 2088, 102}, {101, 7592, 102, 0}});
/// auto out = bert.forward(ids, posenc::EncoderInputs().attention_mask(ids.ne(0)));
/// ```
class FrozenEncoder {
 public:
  /// What Encoder returns for a batch in eval mode; rows of masked tokens are zero after the
  /// layers, also in hidden_states.
  ///
  /// Errors: those of Encoder and FrozenTransformerEncoder; c10::ValueError for output_attentions,
  /// which the Encoder has.
  EncoderOutput forward(const torch::Tensor& input, const EncoderInputs& inputs = {}) const;

  /// The options of the source.
  const EncoderOptions& options() const;
  /// The size of the weights.
  FrozenBytes bytes() const;

 private:
  friend struct inference::FrozenEncoderAccess;
  explicit FrozenEncoder(std::shared_ptr<const inference::FrozenEncoderParts> parts)
      : parts_(std::move(parts)) {}

  std::shared_ptr<const inference::FrozenEncoderParts> parts_;
};

/// Freezes an Encoder, as freeze(const TransformerEncoderImpl&, const FreezeOptions&) does.
///
/// Errors: the same.
FrozenEncoder freeze(const EncoderImpl& model, const FreezeOptions& options = {});
/// freeze() for the Encoder of a holder.
FrozenEncoder freeze(const Encoder& model, const FreezeOptions& options = {});
/// The same; the holder is empty afterwards, as in freeze(Transformer&&, const FreezeOptions&).
FrozenEncoder freeze(Encoder&& model, const FreezeOptions& options = {});

/// Prints the class and its main options on one line.
std::ostream& operator<<(std::ostream& stream, const FrozenEncoder& model);

}  // namespace posenc
