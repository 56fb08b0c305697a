#include "text/regex/properties.h"

#include <algorithm>
#include <string>
#include <utility>

#include "text/unicode/characters.h"
#include "text/unicode/scripts.h"

namespace posenc::text {
namespace {

using namespace unicode;

constexpr std::pair<std::string_view, uint32_t> kCategoryNames[] = {
    {"c", Cn | Cc | Cf | Co | Cs},
    {"other", Cn | Cc | Cf | Co | Cs},
    {"cc", Cc},
    {"control", Cc},
    {"cntrl", Cc},
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

}  // namespace

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
  return script_set(key);
}

}  // namespace posenc::text
