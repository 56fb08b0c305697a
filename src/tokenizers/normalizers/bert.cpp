#include "tokenizers/normalizers/kinds.h"

#include <vector>

#include "tokenizers/normalizers/character_map.h"
#include "tokenizers/unicode/unicode.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

struct BertOptions {
  bool clean_text, handle_chinese_chars, strip_accents, lowercase;
};

std::vector<Change> decomposed(const std::string& text) {
  std::vector<Change> changes;
  if (!unicode::normalize(text, unicode::Form::Nfd, changes)) {
    for (std::size_t at = 0; at < text.size();) changes.push_back({next_character(text, at), 0});
  }
  return changes;
}

void add_lower(std::string& text, char32_t c, bool lowercase) {
  if (!lowercase) return append_character(text, c);
  const unicode::Lower lower = unicode::lowercase(c);
  for (int i = 0; i < lower.count; ++i) append_character(text, lower.characters[i]);
}

Mapped bert_clean(char32_t c, const BertOptions& options) {
  Mapped mapped;
  if (options.clean_text) {
    if (unicode::is_bert_control(c)) return mapped;
    if (unicode::is_white_space(c)) c = U' ';
  }
  const bool is_apart = options.handle_chinese_chars && unicode::is_bert_cjk(c);
  if (is_apart) mapped.text += ' ';
  append_character(mapped.text, c);
  if (is_apart) mapped.text += ' ';
  return mapped;
}

// All steps for one character. Accents that are kept may change places with their neighbours.
Mapped bert_map(char32_t c, const BertOptions& options) {
  const Mapped clean = bert_clean(c, options);
  Mapped mapped;
  if (!options.strip_accents) {
    for (std::size_t at = 0; at < clean.text.size();) {
      add_lower(mapped.text, next_character(clean.text, at), options.lowercase);
    }
    return mapped;
  }
  for (const Change& part : decomposed(clean.text)) {
    if (unicode::is_nonspacing_mark(part.character)) continue;
    if (unicode::character(part.character).combining_class != 0) mapped.is_unclear = true;
    add_lower(mapped.text, part.character, options.lowercase);
  }
  return mapped;
}

class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(const BertOptions& options)
      : all_([options](char32_t c) { return bert_map(c, options); }),
        clean_([options](char32_t c) { return bert_clean(c, options); }),
        after_([options](char32_t c) {
          Mapped mapped;
          if (!unicode::is_nonspacing_mark(c)) add_lower(mapped.text, c, options.lowercase);
          return mapped;
        }),
        does_nothing_(!options.clean_text && !options.handle_chinese_chars &&
                      !options.strip_accents && !options.lowercase) {}

  void normalize(AlignedText& text) const override {
    if (does_nothing_) return;
    text.require_begin();
    if (all_.map(text)) return;
    clean_.map(text);
    std::vector<Change> changes;
    if (unicode::normalize(text.text(), unicode::Form::Nfd, changes)) text.transform(changes);
    after_.map(text);
  }

 private:
  CharacterMap all_;            // all steps at once
  CharacterMap clean_, after_;  // what comes before and after the normal form
  bool does_nothing_;
};

}  // namespace

NormalizerPtr make_bert_normalizer(const Component& component) {
  BertOptions options{};
  options.clean_text = component.boolean("clean_text");
  options.handle_chinese_chars = component.boolean("handle_chinese_chars");
  options.lowercase = component.boolean("lowercase");
  options.strip_accents = component.optional_boolean("strip_accents").value_or(options.lowercase);
  return std::make_unique<BertNormalizer>(options);
}

}  // namespace posenc::text
