#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizers/unicode/aligned_text.h"

namespace posenc::text {

/// An added token in a text. Its bytes need not be in SplitText::text, as two may share blanks.
struct SplitToken {
  uint32_t id;
  Span span;              ///< (0, 0) unless offsets are kept
  std::string_view text;  ///< how the text spells it
};

/// A part of a text, which is not empty, or an added token: that is cut no more.
struct Split {
  uint32_t begin, end;               ///< of no meaning for a token
  std::optional<uint32_t> token;     ///< its index in SplitText::tokens
  bool begins_with_nothing = false;  ///< as AlignedText::begins_with_nothing()
};

/// A text that is cut into parts.
class SplitText {
 public:
  AlignedText text;
  std::vector<Split> splits;  ///< in order; they need not cover the text
  std::vector<SplitToken> tokens;

  /// Replaces each part that is no token by those that `cut(piece, add)` makes of it: `add(begin,
  /// end)` adds bytes begin to end of `piece`, unless they are none.
  template <typename Cut>
  void cut_each(Cut&& cut) {
    cut_.clear();
    for (const Split& split : splits) {
      if (split.token) {
        cut_.push_back(split);
        continue;
      }
      const std::string_view piece =
          std::string_view(text.text()).substr(split.begin, split.end - split.begin);
      cut(piece, [&](std::size_t begin, std::size_t end) {
        if (begin == end) return;
        cut_.push_back({static_cast<uint32_t>(split.begin + begin),
                        static_cast<uint32_t>(split.begin + end), std::nullopt,
                        split.begins_with_nothing && begin == 0});
      });
    }
    splits.swap(cut_);
  }

  /// Changes the text of each part that is no token: `change(edit, split)` names all bytes of it.
  template <typename ChangeSplit>
  void change_each(ChangeSplit&& change) {
    AlignedText::Edit edit(text);
    for (Split& split : splits) {
      if (split.token) continue;
      edit.keep(split.begin - edit.at());
      const auto begin = static_cast<uint32_t>(edit.written());
      change(edit, split);
      split.begin = begin;
      split.end = static_cast<uint32_t>(edit.written());
    }
    edit.finish();
  }

 private:
  std::vector<Split> cut_;  // memory that is used again
};

}  // namespace posenc::text
