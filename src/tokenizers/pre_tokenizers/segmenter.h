#pragma once

#include <cstddef>
#include <string_view>

#include "tokenizers/definition/component.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {

/// What becomes of a match.
enum class Behavior { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

/// The `behavior` of a component; Isolated if it is missing and may be.
Behavior component_behavior(const Component& component, bool may_be_missing);

/// Cuts a piece at matches: these and the gaps between them are added in order, without a hole; a
/// match may be empty. `Add` is called with the parts.
template <typename Add>
class Segmenter {
 public:
  Segmenter(Behavior behavior, Add& add) : behavior_(behavior), add_(add) {}

  void add(std::size_t begin, std::size_t end, bool is_match) {
    switch (behavior_) {
      case Behavior::Removed:
        if (!is_match) add_(begin, end);
        break;
      case Behavior::Isolated: add_(begin, end); break;
      case Behavior::Contiguous: join(begin, end, is_match == was_match_); break;
      case Behavior::MergedWithPrevious: join(begin, end, is_match && !was_match_); break;
      case Behavior::MergedWithNext: join(begin, end, has_open_ && was_match_ && !is_match); break;
    }
    was_match_ = is_match;
  }
  void finish() {
    if (has_open_) add_(begin_, end_);
  }

 private:
  void join(std::size_t begin, std::size_t end, bool with_last) {
    if (!with_last || !has_open_) {
      finish();
      begin_ = begin;
      has_open_ = true;
    }
    end_ = end;
  }

  Behavior behavior_;
  Add& add_;
  std::size_t begin_ = 0, end_ = 0;  // the part that may still grow
  bool has_open_ = false;
  bool was_match_ = false;
};

/// Cuts `piece` at each character for which `matches(character)` is true.
template <typename Matches, typename Add>
void cut_at_characters(std::string_view piece, Behavior behavior, Matches&& matches, Add& add) {
  Segmenter<Add> segmenter(behavior, add);
  std::size_t gap = 0;
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t begin = at;
    if (!matches(next_character(piece, at))) continue;
    if (gap < begin) segmenter.add(gap, begin, false);
    segmenter.add(begin, at, true);
    gap = at;
  }
  if (gap < piece.size()) segmenter.add(gap, piece.size(), false);
  segmenter.finish();
}

}  // namespace posenc::text
