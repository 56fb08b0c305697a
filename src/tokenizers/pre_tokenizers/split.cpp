// Split and CharDelimiterSplit.

#include <string>
#include <utility>

#include "posenc/tokenizers/error.h"
#include "tokenizers/definition/component.h"
#include "tokenizers/pre_tokenizers/pre_tokenizer.h"
#include "tokenizers/pre_tokenizers/segmenter.h"
#include "tokenizers/regex/pattern.h"

namespace posenc::text {
namespace {

class SplitPreTokenizer : public PreTokenizer {
 public:
  SplitPreTokenizer(Pattern pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void split(SplitText& text) const override {
    text.cut_each([&](std::string_view piece, auto&& add) {
      Segmenter segmenter(behavior_, add);
      Pattern::Matches matches(pattern_, piece);
      std::size_t gap = 0;
      for (Pattern::Match match{}; matches.next(match); gap = match.end) {
        if (gap < match.begin) segmenter.add(gap, match.begin, invert_);
        segmenter.add(match.begin, match.end, !invert_);
      }
      if (gap < piece.size()) segmenter.add(gap, piece.size(), invert_);
      segmenter.finish();
    });
  }

 private:
  Pattern pattern_;
  Behavior behavior_;
  bool invert_;
};

class DelimiterSplit : public PreTokenizer {
 public:
  explicit DelimiterSplit(char32_t delimiter) : delimiter_(delimiter) {}

  void split(SplitText& text) const override {
    text.cut_each([&](std::string_view piece, auto&& add) {
      cut_at_characters(piece, Behavior::Removed, [&](char32_t c) { return c == delimiter_; }, add);
    });
  }

 private:
  char32_t delimiter_;
};

}  // namespace

Behavior component_behavior(const Component& component, bool may_be_missing) {
  if (may_be_missing && !component.has("behavior")) return Behavior::Isolated;
  const std::string name = component.at("behavior").is_string() ? component.string("behavior") : "";
  if (name == "Removed") return Behavior::Removed;
  if (name == "Isolated") return Behavior::Isolated;
  if (name == "MergedWithPrevious") return Behavior::MergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::MergedWithNext;
  if (name == "Contiguous") return Behavior::Contiguous;
  component.refuse("behavior",
                   "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

PreTokenizerPtr make_split(const Component& component) {
  Pattern pattern = component_pattern(component);
  const Behavior behavior = component_behavior(component, false);
  return std::make_unique<SplitPreTokenizer>(std::move(pattern), behavior,
                                             component.boolean("invert"));
}

PreTokenizerPtr make_delimiter_split(const Component& component) {
  return std::make_unique<DelimiterSplit>(component.character("delimiter"));
}

}  // namespace posenc::text
