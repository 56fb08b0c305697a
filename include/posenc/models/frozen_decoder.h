#pragma once

#include <iosfwd>
#include <memory>
#include <vector>

#include "posenc/export.h"
#include "posenc/inference/freeze.h"
#include "posenc/models/decoder.h"

namespace posenc::inference {
struct FrozenDecoderParts;  // private
struct FrozenDecoderAccess;
struct PromptCacheParts;
}  // namespace posenc::inference

namespace posenc POSENC_EXPORT {

/// A Decoder for inference; see FrozenTransformerEncoder. In a batch of unequal lengths only the
/// tokens are computed.
///
/// ```cpp
/// auto model = posenc::freeze(posenc::load_decoder("models/gpt2"));
/// auto found = posenc::generate(model, {{46, 32}},
/// posenc::load_generation_config("models/gpt2"));
/// ```
class FrozenDecoder {
 public:
  /// What Decoder returns for a batch in eval mode; the rows of padding are zero.
  ///
  /// Errors: those of Decoder and FrozenTransformerEncoder.
  DecoderOutput forward(const torch::Tensor& ids, const DecoderInputs& inputs = {}) const;

  /// The options of the source.
  const DecoderOptions& options() const;
  /// The size of the weights.
  FrozenBytes bytes() const;

 private:
  friend struct inference::FrozenDecoderAccess;
  explicit FrozenDecoder(std::shared_ptr<const inference::FrozenDecoderParts> parts)
      : parts_(std::move(parts)) {}

  std::shared_ptr<const inference::FrozenDecoderParts> parts_;
};

/// Prints its sizes, and how it holds its weights.
std::ostream& operator<<(std::ostream& stream, const FrozenDecoder& model);

/// Freezes a Decoder, as freeze(const TransformerEncoderImpl&, const FreezeOptions&) does.
///
/// Errors: the same.
FrozenDecoder freeze(const DecoderImpl& model, const FreezeOptions& options = {});
/// freeze() of the model of a holder.
FrozenDecoder freeze(const Decoder& model, const FreezeOptions& options = {});
/// freeze() of a holder that nobody else needs, which is empty afterwards.
FrozenDecoder freeze(Decoder&& model, const FreezeOptions& options = {});

/// The keys and values of the prompts' common beginning, such as a system message, which generate()
/// then computes once and not in each call. A cache belongs to one frozen model.
///
/// ```cpp
/// auto model = posenc::freeze(posenc::load_decoder("models/gpt2"));
/// posenc::PromptCache cache(model, {46, 32});
/// auto found = posenc::generate(model, {{46, 32, 18}, {46, 32, 73}},
///                               posenc::load_generation_config("models/gpt2"), &cache);
/// ```
class PromptCache {
 public:
  /// Computes these tokens.
  ///
  /// Errors: c10::ValueError for no tokens; c10::IndexError for ids outside the vocabulary.
  PromptCache(const FrozenDecoder& model, std::vector<int64_t> tokens);

  /// The tokens.
  const std::vector<int64_t>& tokens() const;

 private:
  friend struct inference::FrozenDecoderAccess;
  std::shared_ptr<const inference::PromptCacheParts> parts_;
};

/// generate() of a frozen model. Prompts that begin with the tokens of `cache` take their keys and
/// values from it, with the same result but for roundings: products of few rows add in another
/// order, and in 8 bits the scores of few tokens are float32.
///
/// Errors: also c10::ValueError for a cache of another model, and for an `options` of attention.
std::vector<std::vector<Hypothesis>> generate(const FrozenDecoder& model,
                                              const std::vector<std::vector<int64_t>>& prompts,
                                              const GenerateOptions& options,
                                              const PromptCache* cache = nullptr);

/// score() of a frozen model.
std::vector<std::vector<double>> score(const FrozenDecoder& model,
                                       const std::vector<std::vector<int64_t>>& texts);

}  // namespace posenc
