#include "tokenizers/regex/properties.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tokenizers/unicode/characters.h"
#include "tokenizers/unicode/lowercase.h"
#include "tokenizers/unicode/other_properties.h"
#include "tokenizers/unicode/scripts.h"

namespace posenc::text {
namespace {

using namespace unicode;

constexpr std::pair<std::string_view, uint32_t> kCategoryNames[] = {
    {"c", Cn | Cc | Cf | Co | Cs},
    {"other", Cn | Cc | Cf | Co | Cs},
    {"cc", Cc},
    {"control", Cc},
    {"cf", Cf},
    {"format", Cf},
    {"cn", Cn},
    {"unassigned", Cn},
    {"co", Co},
    {"privateuse", Co},
    {"l", kLetters},
    {"letter", kLetters},
    {"lc", Lu | Ll | Lt},
    {"casedletter", Lu | Ll | Lt},
    {"lu", Lu},
    {"uppercaseletter", Lu},
    {"ll", Ll},
    {"lowercaseletter", Ll},
    {"lt", Lt},
    {"titlecaseletter", Lt},
    {"lm", Lm},
    {"modifierletter", Lm},
    {"lo", Lo},
    {"otherletter", Lo},
    {"m", kMarks},
    {"mark", kMarks},
    {"combiningmark", kMarks},
    {"mn", Mn},
    {"nonspacingmark", Mn},
    {"mc", Mc},
    {"spacingmark", Mc},
    {"me", Me},
    {"enclosingmark", Me},
    {"n", kNumbers},
    {"number", kNumbers},
    {"nd", Nd},
    {"decimalnumber", Nd},
    {"digit", Nd},
    {"nl", Nl},
    {"letternumber", Nl},
    {"no", No},
    {"othernumber", No},
    {"p", kPunctuations},
    {"punctuation", kPunctuations},
    {"pc", Pc},
    {"connectorpunctuation", Pc},
    {"pd", Pd},
    {"dashpunctuation", Pd},
    {"ps", Ps},
    {"openpunctuation", Ps},
    {"pe", Pe},
    {"closepunctuation", Pe},
    {"pi", Pi},
    {"initialpunctuation", Pi},
    {"pf", Pf},
    {"finalpunctuation", Pf},
    {"po", Po},
    {"otherpunctuation", Po},
    {"s", kSymbols},
    {"symbol", kSymbols},
    {"sm", Sm},
    {"mathsymbol", Sm},
    {"sc", Sc},
    {"currencysymbol", Sc},
    {"sk", Sk},
    {"modifiersymbol", Sk},
    {"so", So},
    {"othersymbol", So},
    {"z", Zs | Zl | Zp},
    {"separator", Zs | Zl | Zp},
    {"zs", Zs},
    {"spaceseparator", Zs},
    {"zl", Zl},
    {"lineseparator", Zl},
    {"zp", Zp},
    {"paragraphseparator", Zp},
    {"assigned", ~uint32_t{Cn}},
};

std::optional<CharacterSet> script_set(std::string_view name) {
  const ScriptName* end = kScriptNames + kScriptNameCount;
  const ScriptName* found = std::partition_point(
      kScriptNames, end, [name](const ScriptName& script) { return script.name < name; });
  if (found == end || found->name != name) return std::nullopt;
  CharacterSet set;
  char32_t first = 0;
  for (std::size_t i = 0; i < kScriptPropertyRangeCount; ++i) {
    const ScriptRange& range = kScriptPropertyRanges[i];
    if (range.script == found->script) set.add(first, range.last);
    first = range.last + 1;
  }
  return set;
}

template <std::size_t kCount>
CharacterSet with_others(uint32_t categories, const Range (&others)[kCount]) {
  CharacterSet set = CharacterSet::of_categories(categories);
  for (const Range& range : others) set.add(range.first, range.last);
  return set;
}

// The short names of the properties of emoji.
constexpr std::pair<std::string_view, std::string_view> kEmojiNames[] = {
    {"epres", "emojipresentation"},
    {"emod", "emojimodifier"},
    {"ebase", "emojimodifierbase"},
    {"ecomp", "emojicomponent"},
};

std::optional<CharacterSet> emoji_set(std::string_view name) {
  for (const auto& [brief, whole] : kEmojiNames) {
    if (brief == name) name = whole;
  }
  for (const RangeProperty& property : kEmojiProperties) {
    if (property.name != name) continue;
    CharacterSet set;
    for (std::size_t i = 0; i < property.count; ++i)
      set.add(property.ranges[i].first, property.ranges[i].last);
    return set;
  }
  return std::nullopt;
}

// What is no blank, and has a category.
constexpr uint32_t kNotGraph = Cn | Cc | Cs | Zs | Zl | Zp;

// The classes of POSIX whose names are properties, too.
std::optional<CharacterSet> posix_property_set(std::string_view name) {
  if (name == "alpha" || name == "alphabetic") return with_others(kLetters | Nl, kOtherAlphabetic);
  if (name == "alnum") return with_others(kLetters | Nl | Nd, kOtherAlphabetic);
  if (name == "upper" || name == "uppercase") return with_others(Lu, kOtherUppercase);
  if (name == "lower" || name == "lowercase") return with_others(Ll, kOtherLowercase);
  if (name == "graph") return CharacterSet::of_categories(~kNotGraph);
  if (name == "print") return CharacterSet::of_categories(~kNotGraph | Zs);
  if (name == "cntrl") return CharacterSet::of_categories(Cc);
  if (name == "blank") {
    CharacterSet set = CharacterSet::of_categories(Zs);
    set.add('\t', '\t');
    return set;
  }
  return std::nullopt;
}

}  // namespace

std::optional<CharacterSet> posix_set(std::string_view name) {
  if (name == "digit") return digit_set();
  if (name == "space") return space_set();
  if (name == "word") return word_set_in_brackets();
  if (name == "xdigit") return hexadecimal_set();
  if (name == "ascii") return CharacterSet(0, 0x7F);
  if (name == "punct") return CharacterSet::of_categories(kPunctuations | kSymbols);
  return name == "alphabetic" || name == "uppercase" || name == "lowercase"
             ? std::nullopt
             : posix_property_set(name);
}

CharacterSet with_both_cases(CharacterSet set) {
  CharacterSet more;
  for (std::size_t i = 0; i < kLowerRangeCount; ++i) {
    const LowerRange& range = kLowerRanges[i];
    for (uint32_t c = range.first; c <= range.last; c += static_cast<uint32_t>(range.step)) {
      const char32_t lower = c + static_cast<uint32_t>(range.distance);
      const bool is_newer = (character(c).category & Cn) != 0;  // than 16.0
      if (is_newer || set.contains(c) == set.contains(lower)) continue;
      more.add(set.contains(c) ? lower : c, set.contains(c) ? lower : c);
    }
  }
  set.add(more);
  return set;
}

CharacterSet digit_set() { return CharacterSet::of_categories(Nd); }

CharacterSet space_set() { return CharacterSet::of_flags(kWhiteSpace); }

CharacterSet word_set_in_brackets() {
  return CharacterSet::of_flags(kWord).intersection(CharacterSet(0x200C, 0x200D).complement());
}

CharacterSet word_set() {
  CharacterSet set = word_set_in_brackets();
  set.add(0xB2, 0xB3);
  set.add(0xB9, 0xB9);
  set.add(0xBC, 0xBE);
  return set;
}

CharacterSet hexadecimal_set() {
  CharacterSet set('0', '9');
  set.add('A', 'F');
  set.add('a', 'f');
  return set;
}

std::optional<CharacterSet> property_set(std::string_view name) {
  std::string key;
  for (const char c : name) {
    if (c == ' ' || c == '-' || c == '_') continue;
    key.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
  }
  for (const auto& [category, mask] : kCategoryNames) {
    if (category == key) return CharacterSet::of_categories(mask);
  }
  if (key == "any") return CharacterSet(0, 0x10FFFF);
  if (key == "ascii") return CharacterSet(0, 0x7F);
  if (key == "space" || key == "whitespace") return space_set();
  if (key == "word") return word_set();
  if (key == "xdigit" || key == "asciihexdigit" || key == "ahex") return hexadecimal_set();
  if (key == "punct") return CharacterSet::of_categories(kPunctuations);
  if (const auto set = posix_property_set(key)) return set;
  if (const auto set = emoji_set(key)) return set;
  return script_set(key);
}

}  // namespace posenc::text
