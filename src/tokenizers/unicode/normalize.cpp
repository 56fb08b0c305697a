#include <algorithm>
#include <cstring>

#include "tokenizers/unicode/compositions.h"
#include "tokenizers/unicode/decompositions.h"
#include "tokenizers/unicode/unicode.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text::unicode {
namespace {

constexpr char32_t kHangulFirst = 0xAC00, kHangulLast = 0xD7A3;
constexpr char32_t kLFirst = 0x1100, kVFirst = 0x1161, kTBefore = 0x11A7;
constexpr char32_t kLCount = 19, kVCount = 21, kTCount = 28;

/// Characters that may change in a form, or join the one before them.
uint16_t suspects(Form form) {
  switch (form) {
    case Form::Nfd: return kDecomposes;
    case Form::Nfkd: return kDecomposes | kDecomposesCompatibly;
    case Form::Nfc: return kNotNfc;
    default: return kNotNfkc;
  }
}

/// The number of ASCII bytes from `at` on.
std::size_t skip_ascii(std::string_view text, std::size_t at) {
  constexpr uint64_t kHigh = 0x8080808080808080;
  for (uint64_t bytes; at + sizeof bytes <= text.size(); at += sizeof bytes) {
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    if ((bytes & kHigh) != 0) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

/// Whether it is certain that the text is in the form: no suspect, and all marks are in order.
bool is_normal(std::string_view text, uint16_t suspect) {
  uint8_t last = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      at = skip_ascii(text, at);
      last = 0;
      continue;
    }
    const Character& known = character(next_character(text, at));
    if ((known.flags & suspect) != 0) return false;
    if (known.combining_class != 0 && known.combining_class < last) return false;
    last = known.combining_class;
  }
  return true;
}

/// Appends the decomposition: its first character is the old one, the others are new.
void append(std::u16string_view units, std::vector<Change>& changes) {
  int32_t change = 0;
  for (std::size_t i = 0; i < units.size(); ++i) {
    char32_t c = units[i];
    if (c >= 0xD800 && c < 0xDC00) c = 0x10000 + ((c - 0xD800) << 10 | (units[++i] - 0xDC00u));
    changes.push_back({c, change});
    change = 1;
  }
}

void append_hangul(char32_t c, std::vector<Change>& changes) {
  const char32_t index = c - kHangulFirst;
  changes.push_back({kLFirst + index / (kVCount * kTCount), 0});
  changes.push_back({kVFirst + index / kTCount % kVCount, 1});
  if (index % kTCount != 0) changes.push_back({kTBefore + index % kTCount, 1});
}

void decompose(std::string_view text, bool compatible, std::vector<Change>& changes) {
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_character(text, at);
    const uint16_t flags = c < 0x80 ? 0 : character(c).flags;
    if (compatible && (flags & kDecomposesCompatibly) != 0) {
      append(kCompatible[c], changes);
    } else if ((flags & kDecomposes) == 0) {
      changes.push_back({c, 0});
    } else if (c >= kHangulFirst && c <= kHangulLast) {
      append_hangul(c, changes);
    } else {
      append(kCanonical[c], changes);
    }
  }
}

uint8_t combining_class(char32_t c) { return c < 0x300 ? 0 : character(c).combining_class; }

/// Puts each run of marks into canonical order; a character takes its change along.
void order(std::span<Change> changes) {
  for (std::size_t i = 0; i < changes.size();) {
    if (combining_class(changes[i].character) == 0) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < changes.size() && combining_class(changes[end].character) != 0) ++end;
    if (end - i > 1) {
      std::stable_sort(changes.begin() + static_cast<std::ptrdiff_t>(i),
                       changes.begin() + static_cast<std::ptrdiff_t>(end),
                       [](const Change& a, const Change& b) {
                         return combining_class(a.character) < combining_class(b.character);
                       });
    }
    i = end;
  }
}

/// The character that two are joined to, or 0.
char32_t composed(char32_t first, char32_t second) {
  if (second < 0x300 || !has(second, kNotNfc)) return 0;
  if (second - kVFirst < kVCount) {
    if (first - kLFirst >= kLCount) return 0;
    return kHangulFirst + ((first - kLFirst) * kVCount + (second - kVFirst)) * kTCount;
  }
  if (second > kTBefore && second - kTBefore < kTCount) {
    const bool lv =
        first >= kHangulFirst && first <= kHangulLast && (first - kHangulFirst) % kTCount == 0;
    return lv ? first + (second - kTBefore) : 0;
  }
  const Composition* end = kCompositions + kCompositionCount;
  const Composition* found =
      std::partition_point(kCompositions, end, [first, second](const Composition& pair) {
        return pair.second != second ? pair.second < second : pair.first < first;
      });
  return found != end && found->second == second && found->first == first ? found->composed : 0;
}

/// Joins what can be joined, in place. A joined character stands for what both did.
void compose(std::vector<Change>& changes) {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t out = 0, starter = kNone;
  int last = -1;  // the class of the mark before, after the starter
  for (const Change change : changes) {
    const int mark = combining_class(change.character);
    if (starter != kNone && last < (last < 0 ? 1 : mark)) {
      Change& joined = changes[starter];
      if (const char32_t c = composed(joined.character, change.character); c != 0) {
        joined = {c, joined.change + change.change - 1};
        continue;
      }
    }
    if (mark == 0) starter = out;
    last = mark == 0 ? -1 : mark;
    changes[out++] = change;
  }
  changes.resize(out);
}

/// Whether the changes leave the text as it is.
bool are_none(std::string_view text, const std::vector<Change>& changes) {
  std::size_t at = 0;
  for (const Change& change : changes) {
    if (at == text.size() || change.change != 0 || next_character(text, at) != change.character)
      return false;
  }
  return at == text.size();
}

}  // namespace

bool normalize(std::string_view text, Form form, std::vector<Change>& changes) {
  if (is_normal(text, suspects(form))) return false;
  changes.clear();
  decompose(text, form == Form::Nfkd || form == Form::Nfkc, changes);
  order(changes);
  if (form == Form::Nfc || form == Form::Nfkc) compose(changes);
  if (!are_none(text, changes)) return true;
  changes.clear();
  return false;
}

}  // namespace posenc::text::unicode
