#include "tokenizers/unicode/unicode.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text::unicode {
namespace {

/// What the rules of UAX 29 need to know of a cluster's characters so far.
struct Cluster {
  Break last;
  bool odd_regional = false;  // GB12: an odd number of regional indicators
  bool pictographic = false;  // GB11: a pictogram, and extending characters after it
  bool consonant = false;     // GB9c: a consonant, and linkers and extending characters after it
  bool linked = false;        // GB9c: and one of them a linker

  explicit Cluster(const Character& c) : last(c.grapheme_break()) { note(c); }

  void note(const Character& c) {
    const Break kind = c.grapheme_break();
    odd_regional = kind == Break::Regional && !(last == Break::Regional && odd_regional);
    if (c.is_pictographic()) {
      pictographic = true;
    } else if (kind != Break::Extend && kind != Break::Zwj) {
      pictographic = false;
    }
    switch (c.conjunct()) {
      case Conjunct::Consonant:
        consonant = true;
        linked = false;
        break;
      case Conjunct::Linker: linked = consonant; break;
      case Conjunct::Extend: break;
      case Conjunct::None: consonant = linked = false; break;
    }
    last = kind;
  }

  /// Whether the cluster goes on with `c`.
  bool takes(const Character& c) const {
    const Break kind = c.grapheme_break();
    const auto control = [](Break b) {
      return b == Break::Control || b == Break::Cr || b == Break::Lf;
    };
    if (last == Break::Cr && kind == Break::Lf) return true;  // GB3
    if (control(last) || control(kind)) return false;         // GB4, GB5
    const bool v = kind == Break::V, t = kind == Break::T;
    if (last == Break::L && (kind == Break::L || v || kind == Break::Lv || kind == Break::Lvt))
      return true;
    if ((last == Break::Lv || last == Break::V) && (v || t)) return true;        // GB7
    if ((last == Break::Lvt || last == Break::T) && t) return true;              // GB8
    if (kind == Break::Extend || kind == Break::Zwj) return true;                // GB9
    if (kind == Break::SpacingMark || last == Break::Prepend) return true;       // GB9a, GB9b
    if (linked && c.conjunct() == Conjunct::Consonant) return true;              // GB9c
    if (last == Break::Zwj && pictographic && c.is_pictographic()) return true;  // GB11
    return kind == Break::Regional && last == Break::Regional && odd_regional;   // GB12, GB13
  }
};

}  // namespace

std::size_t grapheme_end(std::string_view text, std::size_t at) {
  const auto ascii = [&](std::size_t i) { return static_cast<unsigned char>(text[i]) < 0x80; };
  if (ascii(at) && (at + 1 == text.size() || (ascii(at + 1) && text[at] != '\r'))) return at + 1;
  Cluster cluster(character(next_character(text, at)));
  while (at < text.size()) {
    std::size_t next = at;
    const Character& c = character(next_character(text, next));
    if (!cluster.takes(c)) break;
    cluster.note(c);
    at = next;
  }
  return at;
}

}  // namespace posenc::text::unicode
