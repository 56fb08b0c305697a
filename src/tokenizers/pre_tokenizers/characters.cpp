// The pre-tokenizers that look at one character at a time.

#include <array>
#include <cstdint>

#include "posenc/tokenizers/error.h"
#include "tokenizers/definition/component.h"
#include "tokenizers/pre_tokenizers/pre_tokenizer.h"
#include "tokenizers/pre_tokenizers/segmenter.h"
#include "tokenizers/unicode/unicode.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

enum class CharacterKind : uint8_t { Blank, Alone, Word, Other };

// A pre-tokenizer of kinds of characters: blanks are removed, runs of Word and of Other are parts,
// and so is each Alone.
template <CharacterKind (*kKindOf)(char32_t)>
class KindPreTokenizer : public PreTokenizer {
 public:
  KindPreTokenizer() {
    for (char32_t c = 0; c < 128; ++c) ascii_[c] = kKindOf(c);
  }

  void split(SplitText& text) const override {
    text.cut_each([&](std::string_view piece, auto&& add) {
      std::size_t begin = 0;
      CharacterKind last = CharacterKind::Blank;
      for (std::size_t at = 0; at < piece.size();) {
        const std::size_t here = at;
        const auto byte = static_cast<unsigned char>(piece[at]);
        const CharacterKind kind =
            byte < 0x80 ? (++at, ascii_[byte]) : kKindOf(next_character(piece, at));
        if (kind == last && kind != CharacterKind::Alone) continue;
        if (last != CharacterKind::Blank) add(begin, here);
        begin = here;
        last = kind;
      }
      if (last != CharacterKind::Blank) add(begin, piece.size());
    });
  }

 private:
  std::array<CharacterKind, 128> ascii_;
};

CharacterKind bert_kind(char32_t c) {
  if (unicode::is_white_space(c)) return CharacterKind::Blank;
  return unicode::is_punctuation(c) ? CharacterKind::Alone : CharacterKind::Word;
}

CharacterKind whitespace_kind(char32_t c) {
  if (unicode::is_word(c)) return CharacterKind::Word;
  return unicode::is_white_space(c) ? CharacterKind::Blank : CharacterKind::Other;
}

CharacterKind whitespace_split_kind(char32_t c) {
  return unicode::is_white_space(c) ? CharacterKind::Blank : CharacterKind::Word;
}

// Cuts at the characters of one property.
template <bool (*kMatches)(char32_t)>
class CharacterPreTokenizer : public PreTokenizer {
 public:
  explicit CharacterPreTokenizer(Behavior behavior) : behavior_(behavior) {}

  void split(SplitText& text) const override {
    text.cut_each([&](std::string_view piece, auto&& add) {
      cut_at_characters(piece, behavior_, kMatches, add);
    });
  }

 private:
  Behavior behavior_;
};

class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(uint64_t length) : length_(length) {}

  void split(SplitText& text) const override {
    text.cut_each([&](std::string_view piece, auto&& add) {
      std::size_t begin = 0;
      uint64_t characters = 0;
      for (std::size_t at = 0; at < piece.size();) {
        next_character(piece, at);
        if (++characters < length_ && at < piece.size()) continue;
        add(begin, at);
        begin = at;
        characters = 0;
      }
    });
  }

 private:
  uint64_t length_;
};

class UnicodeScripts : public PreTokenizer {
 public:
  void split(SplitText& text) const override {
    text.cut_each([](std::string_view piece, auto&& add) {
      std::size_t begin = piece.size();  // what comes before the first script is lost
      bool has_begun = false;
      unicode::Script last = unicode::kAnyScript;
      for (std::size_t at = 0; at < piece.size();) {
        const std::size_t here = at;
        const unicode::Script script = unicode::script_of(next_character(piece, at));
        if (script == unicode::kAnyScript || (has_begun && script == last)) continue;
        if (has_begun) add(begin, here);
        begin = here;
        has_begun = true;
        last = script;
      }
      add(begin, piece.size());
    });
  }
};

}  // namespace

PreTokenizerPtr make_bert_pre_tokenizer() {
  return std::make_unique<KindPreTokenizer<bert_kind>>();
}

PreTokenizerPtr make_whitespace() { return std::make_unique<KindPreTokenizer<whitespace_kind>>(); }

PreTokenizerPtr make_whitespace_split() {
  return std::make_unique<KindPreTokenizer<whitespace_split_kind>>();
}

PreTokenizerPtr make_punctuation(const Component& component) {
  return std::make_unique<CharacterPreTokenizer<unicode::is_punctuation>>(
      component_behavior(component, true));
}

PreTokenizerPtr make_digits(const Component& component) {
  const bool individual = component.boolean("individual_digits");
  return std::make_unique<CharacterPreTokenizer<unicode::is_number>>(
      individual ? Behavior::Isolated : Behavior::Contiguous);
}

PreTokenizerPtr make_fixed_length(const Component& component) {
  const uint64_t length = component.number("length", 5);
  if (length == 0) component.refuse("length", "positive");
  return std::make_unique<FixedLength>(length);
}

PreTokenizerPtr make_unicode_scripts() { return std::make_unique<UnicodeScripts>(); }

}  // namespace posenc::text
