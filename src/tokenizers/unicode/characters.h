#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace posenc::text::unicode {

/// General categories, as bits: a set of them is one number. Those of 16.0.
enum Category : uint32_t {
  Cn = 1u << 0,
  Cc = 1u << 1,
  Cf = 1u << 2,
  Co = 1u << 3,
  Cs = 1u << 4,
  Lu = 1u << 5,
  Ll = 1u << 6,
  Lt = 1u << 7,
  Lm = 1u << 8,
  Lo = 1u << 9,
  Mn = 1u << 10,
  Mc = 1u << 11,
  Me = 1u << 12,
  Nd = 1u << 13,
  Nl = 1u << 14,
  No = 1u << 15,
  Pc = 1u << 16,
  Pd = 1u << 17,
  Ps = 1u << 18,
  Pe = 1u << 19,
  Pi = 1u << 20,
  Pf = 1u << 21,
  Po = 1u << 22,
  Sm = 1u << 23,
  Sc = 1u << 24,
  Sk = 1u << 25,
  So = 1u << 26,
  Zs = 1u << 27,
  Zl = 1u << 28,
  Zp = 1u << 29,
};
constexpr uint32_t kLetters = Lu | Ll | Lt | Lm | Lo;
constexpr uint32_t kMarks = Mn | Mc | Me;
constexpr uint32_t kNumbers = Nd | Nl | No;
constexpr uint32_t kPunctuations = Pc | Pd | Ps | Pe | Pi | Pf | Po;
constexpr uint32_t kSymbols = Sm | Sc | Sk | So;

/// The other answers about a character, as bits; tools/unicode_tables.py knows what each means.
enum Flag : uint16_t {
  kWhiteSpace = 1 << 0,
  kPunctuation = 1 << 1,
  kNonspacingMark = 1 << 2,
  kBertControl = 1 << 3,
  kBertCjk = 1 << 4,
  kMark = 1 << 5,
  kNumber = 1 << 6,
  kWord = 1 << 7,
  kHasLower = 1 << 8,
  kDecomposes = 1 << 9,             // has a canonical decomposition
  kDecomposesCompatibly = 1 << 10,  // has a compatibility decomposition, and it is another one
  kNotNfc = 1 << 11,                // NFC changes it, or may join it to the character before it
  kNotNfkc = 1 << 12,               // the same of NFKC
};

/// Where grapheme clusters end: the property Grapheme_Cluster_Break of 17.0.
enum class Break : uint8_t {
  Other,
  Control,
  Cr,
  Lf,
  Extend,
  Prepend,
  SpacingMark,
  L,
  V,
  T,
  Lv,
  Lvt,
  Regional,
  Zwj
};
/// The same: Indic_Conjunct_Break.
enum class Conjunct : uint8_t { None, Consonant, Linker, Extend };

/// What is known of a character. Some 160 kinds of characters differ.
struct Character {
  uint32_t category;        // a bit of Category
  uint16_t flags;           // bits of Flag
  uint8_t combining_class;  // canonical, of 9.0
  uint8_t cluster;

  Break grapheme_break() const { return static_cast<Break>(cluster & 15); }
  Conjunct conjunct() const { return static_cast<Conjunct>(cluster >> 4 & 3); }
  bool is_pictographic() const { return (cluster & 64) != 0; }
};

constexpr std::size_t kMostPages = 192;
extern const std::array<uint8_t, 0x1100> kPages;  // the page of each 256 characters
extern const std::array<uint8_t, kMostPages * 256>
    kKinds;                            // the kind of each character of each page
extern const Character kRecords[256];  // of each kind

inline const Character& character(char32_t c) {
  return kRecords[kKinds[static_cast<std::size_t>(kPages[c >> 8]) << 8 | (c & 0xFF)]];
}

}  // namespace posenc::text::unicode
