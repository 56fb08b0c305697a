#include "tokenizers/regex/character_set.h"

#include <algorithm>
#include <array>

#include "tokenizers/unicode/characters.h"

namespace posenc::text {
namespace {

constexpr char32_t kLastCharacter = 0x10FFFF;

}  // namespace

template <typename Predicate>
CharacterSet CharacterSet::of_kinds(Predicate is_in) {
  std::array<bool, 256> kinds{};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind)
    kinds[kind] = is_in(unicode::kRecords[kind]);
  CharacterSet set;
  const auto extend = [&set](char32_t first, char32_t last) {
    if (!set.ranges_.empty() && set.ranges_.back().last + 1 == first) {
      set.ranges_.back().last = last;
    } else {
      set.ranges_.push_back({first, last});
    }
  };
  // Of a page that recurs, such as those of Han, it is only asked once whether it is all in, all
  // out or mixed.
  enum class Page : uint8_t { Unknown, None, All, Mixed };
  std::array<Page, unicode::kMostPages> pages{};
  for (char32_t page = 0; page < unicode::kPages.size(); ++page) {
    const std::size_t index = unicode::kPages[page];
    const auto begin = unicode::kKinds.begin() + static_cast<std::ptrdiff_t>(index << 8);
    if (pages[index] == Page::Unknown) {
      const auto count =
          std::count_if(begin, begin + 256, [&](uint8_t kind) { return kinds[kind]; });
      pages[index] = count == 0 ? Page::None : count == 256 ? Page::All : Page::Mixed;
    }
    if (pages[index] == Page::All) extend(page << 8, page << 8 | 0xFF);
    if (pages[index] != Page::Mixed) continue;
    for (char32_t i = 0; i < 256; ++i) {
      if (kinds[begin[i]]) extend(page << 8 | i, page << 8 | i);
    }
  }
  return set;
}

CharacterSet CharacterSet::of_categories(uint32_t categories) {
  return of_kinds(
      [categories](const unicode::Character& c) { return (c.category & categories) != 0; });
}

CharacterSet CharacterSet::of_flags(uint16_t flags) {
  return of_kinds([flags](const unicode::Character& c) { return (c.flags & flags) != 0; });
}

void CharacterSet::sort() {
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  std::size_t out = 0;
  for (const Range range : ranges_) {
    if (out > 0 && range.first <= ranges_[out - 1].last + 1) {
      ranges_[out - 1].last = std::max(ranges_[out - 1].last, range.last);
    } else {
      ranges_[out++] = range;
    }
  }
  ranges_.resize(out);
}

void CharacterSet::add(char32_t first, char32_t last) {
  ranges_.push_back({first, last});
  sort();
}

void CharacterSet::add(const CharacterSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  sort();
}

CharacterSet CharacterSet::complement() const {
  CharacterSet set;
  char32_t next = 0;
  for (const Range& range : ranges_) {
    if (range.first > next) set.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCharacter) set.ranges_.push_back({next, kLastCharacter});
  return set;
}

CharacterSet CharacterSet::intersection(const CharacterSet& other) const {
  CharacterSet set;
  for (auto a = ranges_.begin(), b = other.ranges_.begin();
       a != ranges_.end() && b != other.ranges_.end();) {
    const char32_t first = std::max(a->first, b->first), last = std::min(a->last, b->last);
    if (first <= last) set.ranges_.push_back({first, last});
    a->last < b->last ? ++a : ++b;
  }
  return set;
}

bool CharacterSet::contains(char32_t c) const {
  const auto range = std::partition_point(ranges_.begin(), ranges_.end(),
                                          [c](const Range& r) { return r.last < c; });
  return range != ranges_.end() && range->first <= c;
}

}  // namespace posenc::text
