#include "tokenizers/pipeline/truncation.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace posenc::text {
namespace {

// The package's Encoding::truncate().
void truncate_one(const TruncationRule& rule, std::size_t length, std::size_t most,
                  Windows& windows) {
  windows.clear();
  if (most >= length) {
    windows.emplace_back(0, length);
    return;
  }
  if (most == 0) {
    windows = {{0, 0}, {0, length}};
    return;
  }
  base::throw_unless(rule.stride < most, "[Tokenizer] `stride` must be less than the ", most,
                     " tokens that `max_length` leaves for the text. Got ", rule.stride);
  const std::size_t step = most - rule.stride;
  if (rule.from_left) {
    for (std::size_t end = length;; end -= step) {
      windows.emplace_back(end - std::min(end, most), end);
      if (end <= most) break;
    }
  } else {
    for (std::size_t begin = 0;; begin += step) {
      windows.emplace_back(begin, std::min(begin + most, length));
      if (begin + most >= length) break;
    }
  }
}

// The package's lengths for LongestFirst; it gives the shorter text half of what there is.
std::pair<std::size_t, std::size_t> longest_first(std::size_t first, std::size_t second,
                                                  std::size_t most) {
  const bool is_swapped = first > second;
  if (is_swapped) std::swap(first, second);
  second = first > most ? first : std::max(first, most - first);
  if (first + second > most) {
    first = most / 2;
    second = first + most % 2;
  }
  if (is_swapped) std::swap(first, second);
  return {first, second};
}

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

void truncate(const TruncationRule& rule, const std::vector<std::size_t>& lengths,
              std::vector<Windows>& windows) {
  windows.resize(lengths.size());
  std::size_t total = 0;
  for (const std::size_t length : lengths) total += length;
  const std::size_t most = rule.max_length;
  std::vector<std::size_t> kept = lengths;
  if (most == 0) {
    kept.assign(kept.size(), 0);
  } else if (total > most && rule.strategy == TruncationRule::Strategy::LongestFirst) {
    if (lengths.size() == 1) {
      kept[0] = most;
    } else {
      std::tie(kept[0], kept[1]) = longest_first(lengths[0], lengths[1], most);
    }
  } else if (total > most) {
    const std::size_t cut = rule.strategy == TruncationRule::Strategy::OnlyFirst ? 0 : 1;
    base::throw_unless(cut < lengths.size(),
                       "[Tokenizer] `truncation` must be OnlySecond for pairs only");
    base::throw_unless(
        lengths[cut] > total - most,
        "[Tokenizer] `max_length` must leave a token of the text that `truncation` cuts. Got ",
        lengths[cut], " tokens of it and ", total - most, " too many");
    kept[cut] = lengths[cut] - (total - most);
  }
  for (std::size_t i = 0; i < lengths.size(); ++i)
    truncate_one(rule, lengths[i], kept[i], windows[i]);
}

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
