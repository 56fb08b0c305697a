#include "tokenizers/python/truncation.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace posenc::text {
namespace {

// How many tokens each of two texts loses: the longer one down to the other, then both, the second
// by the odd one.
std::pair<std::size_t, std::size_t> lost_by_both(std::size_t first, std::size_t second,
                                                 std::size_t lost) {
  const std::size_t alone = std::min(first > second ? first - second : second - first, lost);
  const std::size_t shared = lost - alone;
  const std::size_t half = shared / 2;
  return first > second ? std::pair(alone + half, shared - half)
                        : std::pair(half, alone + shared - half);
}

}  // namespace

std::size_t truncate_as_python(const TruncationRule& rule, std::size_t room,
                               const std::vector<std::size_t>& lengths,
                               std::vector<Windows>& windows) {
  std::size_t total = 0;
  for (const std::size_t length : lengths) total += length;
  std::vector<std::size_t> lost(lengths.size(), 0);
  std::size_t texts = lengths.size();
  if (total > room) {
    const std::size_t missing = total - room;
    if (rule.strategy == TruncationRule::Strategy::LongestFirst && texts == 2) {
      std::tie(lost[0], lost[1]) = lost_by_both(lengths[0], lengths[1], missing);
      if (rule.from_left && lengths[1] == 0) texts = 1;
    } else {
      const std::size_t cut = rule.strategy == TruncationRule::Strategy::OnlySecond ? 1 : 0;
      base::throw_unless(cut < texts, "[Tokenizer] `truncation` must be OnlySecond for pairs only");
      base::throw_unless(
          lengths[cut] >= missing,
          "[Tokenizer] `max_length` must leave room for the text that `truncation` does not cut. "
          "Got ",
          lengths[cut], " tokens of the other and ", missing, " too many");
      lost[cut] = missing;
    }
  }
  windows.resize(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::size_t kept = lengths[i] - std::min(lost[i], lengths[i]);
    const std::size_t begin = rule.from_left ? lengths[i] - kept : 0;
    windows[i] = {{begin, begin + kept}};
  }
  return texts;
}

}  // namespace posenc::text
