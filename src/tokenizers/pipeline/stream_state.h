#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizers/pipeline/tokenizer_pipeline.h"

namespace posenc::text {

/// Decodes ids that come one by one, as DecodeStream of `tokenizers` does: the text so far is
/// decoded with and without the new id, since a decoder may treat the first token in another way
/// than the others. Where the end of the text tells that it is incomplete, the rest is not decoded
/// again.
class StreamState {
 public:
  StreamState(std::shared_ptr<const TextPipeline> pipeline, bool skip_special_tokens)
      : pipeline_(std::move(pipeline)),
        teller_(dynamic_cast<const TokenizerPipeline*>(pipeline_.get())),
        skip_special_tokens_(skip_special_tokens) {
    follow_end();
  }

  /// The text that is complete with `id`; nothing while it ends in U+FFFD, which a further id may
  /// complete. Throws TokenizerError where the new id changes the text before it.
  std::optional<std::string> step(uint32_t id);

  /// The rest of the text; the next id begins a new one.
  std::string end();

 private:
  std::string decode() const { return pipeline_->decode(ids_, skip_special_tokens_); }
  void follow_end();
  void forget_last(bool was_text_empty);

  std::shared_ptr<const TextPipeline> pipeline_;
  const TokenizerPipeline*
      teller_;  // that tells the end of a text; null for the tokenizers of Python
  bool skip_special_tokens_;
  std::vector<uint32_t> ids_;        // only those that have a token
  std::unique_ptr<DecodedEnd> end_;  // of their text; null if the decoder does not tell it
  bool is_text_empty_ = true;
  std::string prefix_;  // the text of the first `prefix_count_` of them
  std::size_t prefix_count_ = 0;
};

}  // namespace posenc::text
