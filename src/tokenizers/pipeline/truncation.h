#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace posenc::text {

/// How two texts are cut to a number of tokens.
struct TruncationRule {
  enum class Strategy { LongestFirst, OnlyFirst, OnlySecond };

  std::size_t max_length = 0;  ///< special tokens included
  Strategy strategy = Strategy::LongestFirst;
  std::size_t stride = 0;
  bool from_left = false;
};

/// Parts of a text's tokens, of which the first is kept and the others are the overflow.
using Windows = std::vector<std::pair<std::size_t, std::size_t>>;

/// Cuts texts of lengths[0] and lengths[1] tokens, the second only for a pair. `rule.max_length`
/// has no room for special tokens any more. Throws ArgumentError for a stride that leaves nothing
/// new, and where the text that is to be cut would become empty.
void truncate(const TruncationRule& rule, const std::vector<std::size_t>& lengths,
              std::vector<Windows>& windows);

/// Cuts one or two texts of these lengths to `room` tokens as PythonBackend does
/// (`truncate_sequences()`), which differs from `tokenizers` where both texts are cut. Returns the
/// number of texts that are left: an empty second text that is cut from the left is none any more.
/// Throws ArgumentError where it would not cut enough.
std::size_t truncate_as_python(const TruncationRule& rule, std::size_t room,
                               const std::vector<std::size_t>& lengths,
                               std::vector<Windows>& windows);

}  // namespace posenc::text
