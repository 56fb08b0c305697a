#include <algorithm>
#include <string>
#include <utility>

#include "posenc/tokenizers/error.h"
#include "tokenizers/definition/component.h"
#include "tokenizers/pre_tokenizers/metaspace.h"
#include "tokenizers/pre_tokenizers/pre_tokenizer.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

class Metaspace : public PreTokenizer {
 public:
  explicit Metaspace(MetaspaceOptions options) : options_(std::move(options)) {}

  void split(SplitText& text) const override {
    replace_blanks(text);
    if (!options_.split) return;
    const std::string& mark = options_.replacement;
    text.cut_each([&](std::string_view piece, auto&& add) {  // each mark begins a part
      std::size_t begin = 0;
      for (std::size_t at = piece.find(mark, 0); at != std::string_view::npos;
           at = piece.find(mark, at + mark.size())) {
        add(begin, at);
        begin = at;
      }
      add(begin, piece.size());
    });
  }
  bool needs_offsets() const override { return options_.prepend_scheme == PrependScheme::First; }

 private:
  void replace_blanks(SplitText& text) const {
    const std::string& mark = options_.replacement;
    std::string begin;
    text.change_each([&](AlignedText::Edit& edit, const Split& split) {
      // Only to the end of the part: the next blank may be far away.
      const std::string_view old = std::string_view(text.text.text()).substr(0, split.end);
      std::size_t at = split.begin;
      if (prepends(text.text, split)) {
        const std::size_t first = utf8_length(static_cast<unsigned char>(old[at]));
        begin.assign(mark).append(old.substr(at, first));
        edit.replace(first, begin);
        at += first;
      }
      while (at < split.end) {
        const std::size_t blank = std::min<std::size_t>(old.find(' ', at), split.end);
        edit.keep(blank - at);
        if (blank < split.end) edit.replace(1, mark);
        at = blank + 1;
      }
    });
  }

  bool prepends(const AlignedText& text, const Split& split) const {
    if (options_.prepend_scheme == PrependScheme::Never) return false;
    const std::string_view rest = std::string_view(text.text()).substr(split.begin);
    if (rest[0] == ' ' || rest.substr(0, options_.replacement.size()) == options_.replacement)
      return false;
    return options_.prepend_scheme == PrependScheme::Always ||
           text.original_begin(split.begin) == 0;
  }

  MetaspaceOptions options_;
};

}  // namespace

MetaspaceOptions metaspace_options(const Component& component) {
  MetaspaceOptions options;
  append_character(options.replacement, component.character("replacement"));
  const std::string scheme = component.string("prepend_scheme", "always");
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    component.refuse("prepend_scheme", "always, first or never");
  }
  options.prepend_scheme = scheme == "always"  ? PrependScheme::Always
                           : scheme == "first" ? PrependScheme::First
                                               : PrependScheme::Never;
  const auto old = component.optional_boolean("add_prefix_space");
  if (old == false && options.prepend_scheme != PrependScheme::Never) {
    component.refuse("prepend_scheme", "never beside an `add_prefix_space` of false");
  }
  options.split = component.optional_boolean("split").value_or(true);
  return options;
}

PreTokenizerPtr make_metaspace(const Component& component) {
  return std::make_unique<Metaspace>(metaspace_options(component));
}

}  // namespace posenc::text
