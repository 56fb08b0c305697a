#include "tokenizers/normalizers/charsmap.h"

#include "base/text.h"
#include "posenc/tokenizers/error.h"

namespace posenc::text {
namespace {

uint32_t unit_at(const std::string& blob, std::size_t at) {
  uint32_t unit = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    unit |= static_cast<uint32_t>(static_cast<unsigned char>(blob[at + i])) << (8 * i);
  }
  return unit;
}

std::size_t children_of(uint32_t unit) {
  return static_cast<std::size_t>(unit >> 10) << ((unit & 0x200u) >> 6);
}

bool has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }

}  // namespace

Charsmap::Charsmap(const std::string& blob, const char* part) {
  const auto bad = [part](const std::string& rule) {
    throw TokenizerError(std::string(part) + ": `precompiled_charsmap`: must " + rule);
  };
  const std::size_t bytes = blob.size() < 4 ? 0 : unit_at(blob, 0);
  if (bytes == 0 || bytes % 4 != 0 || bytes > blob.size() - 4) {
    bad("begin with the size of its trie, in bytes, and contain it");
  }
  units_.resize(bytes / 4);
  for (std::size_t i = 0; i < units_.size(); ++i) units_[i] = unit_at(blob, 4 + 4 * i);
  texts_ = blob.substr(4 + bytes);
  if (!io::is_utf8(texts_)) bad("have texts in UTF-8");
  if (!has_valid_units() && !has_valid_nodes()) bad("have a trie that stays inside its arrays");
}

// Whether a text begins there, and not within a character.
bool Charsmap::is_text(uint32_t value) const {
  if (value >= texts_.size()) return value == texts_.size();
  return (static_cast<unsigned char>(texts_[value]) & 0xC0) != 0x80;
}

// Whether no unit leads out of the trie, nor to a value that is not one of a text, whether a text
// reaches it or not: a single pass, in which the tables that SentencePiece writes hold.
bool Charsmap::has_valid_units() const {
  if ((children_of(units_[0]) | 0xFF) >= units_.size()) return false;
  for (std::size_t i = 0; i < units_.size(); ++i) {
    const uint32_t unit = units_[i];
    if ((unit & 0x80000000u) != 0) continue;  // a value
    const std::size_t child = i ^ children_of(unit);
    if ((child | 0xFF) >= units_.size()) return false;
    if (has_value(unit) && !is_text(units_[child] & 0x7FFFFFFFu)) return false;
  }
  return true;
}

// The same of those units that a text reaches.
bool Charsmap::has_valid_nodes() const {
  std::vector<bool> seen(units_.size());
  std::vector<std::size_t> open = {children_of(units_[0])};
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    // The 256 units around a node are its children.
    if ((node | 0xFF) >= units_.size()) return false;
    if (seen[node]) continue;
    seen[node] = true;
    for (std::size_t label = 1; label < 256; ++label) {
      const uint32_t unit = units_[node ^ label];
      if ((unit & 0x800000FFu) != label) continue;
      const std::size_t child = (node ^ label) ^ children_of(unit);
      if (child >= units_.size()) return false;
      if (has_value(unit) && !is_text(units_[child] & 0x7FFFFFFFu)) return false;
      open.push_back(child);
    }
  }
  return true;
}

template <typename Found>
void Charsmap::for_each_key(std::string_view text, Found&& found) const {
  std::size_t node = children_of(units_[0]);
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto label = static_cast<unsigned char>(text[at]);
    if (label == 0) return;
    node ^= label;
    const uint32_t unit = units_[node];
    if ((unit & 0x800000FFu) != label) return;
    node ^= children_of(unit);
    if (has_value(unit) && !found(at + 1, units_[node] & 0x7FFFFFFFu)) return;
  }
}

bool Charsmap::begins_key(char byte) const {
  const auto label = static_cast<unsigned char>(byte);
  return label != 0 && (units_[children_of(units_[0]) ^ label] & 0x800000FFu) == label;
}

std::string_view Charsmap::text_at(uint32_t value) const {
  const std::string_view rest = std::string_view(texts_).substr(value);
  return rest.substr(0, rest.find('\0'));
}

std::optional<std::string_view> Charsmap::of_shortest(std::string_view text) const {
  std::optional<std::string_view> replacement;
  for_each_key(text, [&](std::size_t, uint32_t value) {
    replacement = text_at(value);
    return false;
  });
  return replacement;
}

std::optional<std::string_view> Charsmap::of_longest(std::string_view text,
                                                     std::size_t& length) const {
  std::optional<uint32_t> longest;
  for_each_key(text, [&](std::size_t bytes, uint32_t value) {
    length = bytes;
    longest = value;
    return true;
  });
  if (!longest) return std::nullopt;
  return text_at(*longest);
}

}  // namespace posenc::text
