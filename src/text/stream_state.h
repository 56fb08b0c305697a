#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace posenc::text {

/// Decodes ids that come one by one, as DecodeStream of `tokenizers` does: the text so far is
/// decoded with and without the new id, since a decoder may treat the first token in another way
/// than the others.
class StreamState {
 public:
  using Decode = std::function<std::string(const std::vector<int64_t>& ids)>;

  explicit StreamState(Decode decode) : decode_(std::move(decode)) {}

  /// The text that is complete with `id`; nothing while it ends in U+FFFD, which a further id may
  /// complete. Throws TokenizerError where the new id changes the text before it.
  std::optional<std::string> step(int64_t id);

 private:
  Decode decode_;
  std::vector<int64_t> ids_;
  std::string prefix_;  // the text of the first `prefix_count_` of them
  std::size_t prefix_count_ = 0;
};

}  // namespace posenc::text
