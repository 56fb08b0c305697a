#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/unicode/aligned_text.h"
#include "tokenizers/unicode/characters.h"

/// What the parts of a tokenizer ask about characters. Each answers as the part of `tokenizers`
/// 0.23.3 does, with that part's version of Unicode (8.0 to 17.0); the tables are written by
/// tools/unicode_tables.py. A program that asks several questions of one character reads
/// character(c) once.
namespace posenc::text::unicode {

inline bool has(char32_t c, Flag flag) { return (character(c).flags & flag) != 0; }

/// White_Space; all versions agree.
inline bool is_white_space(char32_t c) { return has(c, kWhiteSpace); }
/// BertPreTokenizer, Punctuation: P* of 8.0, and all ASCII punctuation.
inline bool is_punctuation(char32_t c) { return has(c, kPunctuation); }
/// BertNormalizer's accents: Mn of 8.0.
inline bool is_nonspacing_mark(char32_t c) { return has(c, kNonspacingMark); }
/// What BertNormalizer's clean_text drops: of Cc, Cf and Co of 8.0, U+0000, U+FFFD.
inline bool is_bert_control(char32_t c) { return has(c, kBertControl); }
/// What BertNormalizer surrounds with blanks.
inline bool is_bert_cjk(char32_t c) { return has(c, kBertCjk); }
/// StripAccents: M* of 9.0.
inline bool is_mark(char32_t c) { return has(c, kMark); }
/// Digits: N* of 17.0.
inline bool is_number(char32_t c) { return has(c, kNumber); }
/// Rust's \w of 16.0: Whitespace, single_word.
inline bool is_word(char32_t c) { return has(c, kWord); }

/// A script as UnicodeScripts sees it: Script of 9.0, where Hiragana, Katakana and U+30FC are Han,
/// and blanks and unassigned characters are Any.
using Script = uint8_t;
constexpr Script kAnyScript = 0;
Script script_of(char32_t c);

/// Characters that stand for one.
struct Lower {
  char32_t characters[3];
  int count;
};
/// The lower-case form (17.0, full mapping, without final sigma).
Lower lowercase(char32_t c);

enum class Form { Nfd, Nfc, Nfkd, Nfkc };
/// Writes the normal form of `text` (9.0) to `changes`, as changes of its characters in order.
/// Returns false, and writes nothing, if `text` is in that form.
bool normalize(std::string_view text, Form form, std::vector<Change>& changes);

/// The end of the extended grapheme cluster (17.0) that begins at byte `at`.
std::size_t grapheme_end(std::string_view text, std::size_t at);

}  // namespace posenc::text::unicode
