#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/machine.h"

namespace posenc::text {

/// Decodes ids that come one by one, as DecodeStream of `tokenizers` does: the text so far is
/// decoded with and without the new id, since a decoder may treat the first token in another way
/// than the others. Where the end of the text tells that it is incomplete, the rest is not decoded
/// again.
class StreamState {
 public:
  using Decode = std::function<std::string(const std::vector<int64_t>& ids)>;

  /// What is known of a tokenizer beside its decode(); each part may be missing.
  struct Hints {
    /// The token of an id; nothing for one that adds nothing to a text.
    std::function<std::optional<std::string_view>(int64_t id)> token;
    /// Decoder::follow_end(), of those tokens.
    std::function<std::unique_ptr<DecodedEnd>()> follow_end;
  };
  /// Those of a Machine, which must outlive them.
  static Hints hints(const Machine& machine, bool skip_special_tokens);

  explicit StreamState(Decode decode, Hints hints = {});

  /// The text that is complete with `id`; nothing while it ends in U+FFFD, which a further id may
  /// complete. Throws TokenizerError where the new id changes the text before it.
  std::optional<std::string> step(int64_t id);

 private:
  void follow_end();
  void forget_last(bool was_text_empty);

  Decode decode_;
  Hints hints_;
  std::vector<int64_t> ids_;         // without those that are known to add nothing
  std::unique_ptr<DecodedEnd> end_;  // of their text; null if only decode_ tells it
  bool is_text_empty_ = true;
  std::string prefix_;  // the text of the first `prefix_count_` of them
  std::size_t prefix_count_ = 0;
};

}  // namespace posenc::text
