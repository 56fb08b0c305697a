#include "text/normalizers/precompiled.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "io/base/text.h"
#include "posenc/text/error.h"
#include "text/base64.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace posenc::text {
namespace {

// A trie as darts-clone writes it. Each unit has the label that leads to it, where its children
// are, and whether a value is among them.
class DoubleArray {
 public:
  explicit DoubleArray(std::vector<uint32_t> units) : units_(std::move(units)) {}

  // The value of the shortest key that `text` begins with.
  std::optional<uint32_t> shortest(std::string_view text) const {
    std::size_t node = offset(units_[0]);
    for (const char byte : text) {
      const auto label = static_cast<unsigned char>(byte);
      if (label == 0) return std::nullopt;
      node ^= label;
      const uint32_t unit = units_[node];
      if ((unit & 0x800000FFu) != label) return std::nullopt;
      node ^= offset(unit);
      if ((unit >> 8 & 1) != 0) return units_[node] & 0x7FFFFFFFu;
    }
    return std::nullopt;
  }

  // Whether no text leads out of the trie, nor to a value of `values` or more.
  bool is_valid(std::size_t values) const {
    return !units_.empty() && (has_valid_units(values) || has_valid_nodes(values));
  }

 private:
  static std::size_t offset(uint32_t unit) {
    return static_cast<std::size_t>(unit >> 10) << ((unit & 0x200u) >> 6);
  }

  // Whether no unit leads out, whether a text reaches it or not: a single pass, in which the tables
  // that SentencePiece writes hold.
  bool has_valid_units(std::size_t values) const {
    if ((offset(units_[0]) | 0xFF) >= units_.size()) return false;
    for (std::size_t i = 0; i < units_.size(); ++i) {
      const uint32_t unit = units_[i];
      if ((unit & 0x80000000u) != 0) continue;  // a value
      const std::size_t child = i ^ offset(unit);
      if ((child | 0xFF) >= units_.size()) return false;
      if ((unit >> 8 & 1) != 0 && (units_[child] & 0x7FFFFFFFu) >= values) return false;
    }
    return true;
  }

  // The same of those units that a text reaches.
  bool has_valid_nodes(std::size_t values) const {
    std::vector<bool> seen(units_.size());
    std::vector<std::size_t> open = {offset(units_[0])};
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
        const std::size_t child = (node ^ label) ^ offset(unit);
        if (child >= units_.size()) return false;
        if ((unit >> 8 & 1) != 0 && (units_[child] & 0x7FFFFFFFu) >= values) return false;
        open.push_back(child);
      }
    }
    return true;
  }

  std::vector<uint32_t> units_;
};

class Precompiled : public Normalizer {
 public:
  explicit Precompiled(const std::string& blob) : trie_(units_of(blob)) {
    texts_ = blob.substr(4 + trie_bytes(blob));
    if (!io::is_utf8(texts_)) bad("have texts in UTF-8");
    if (!trie_.is_valid(texts_.size() + 1)) bad("have a trie that stays inside its arrays");
    for (char c = 1; c > 0 && c < 0x7F; ++c)
      is_kept_[static_cast<unsigned char>(c)] = !find({&c, 1});
    is_kept_[0] = true;
    is_kept_['\r'] = false;  // it may form a cluster with the next character
  }

  void normalize(AlignedText& text) const override {
    const std::string& old = text.text();
    std::size_t at = 0;    // of the first cluster that changes
    std::size_t last = 0;  // the character before it
    for (std::size_t end = 0; at < old.size(); at = end) {
      end = cluster_end(old, at);
      if (changes_cluster(std::string_view(old).substr(at, end - at))) break;
      last = last_character(old, at, end);
    }
    if (at == old.size()) return;
    const std::size_t begin = at > 0 ? last : 0;
    std::vector<Change> changes;
    changes.reserve(old.size() - begin);
    for (std::size_t i = begin; i < at;) changes.push_back({next_character(old, i), 0});
    while (at < old.size()) {
      const std::size_t end = cluster_end(old, at);
      add_cluster(std::string_view(old).substr(at, end - at), changes);
      at = end;
    }
    text.transform(changes, begin);
  }

 private:
  static constexpr std::size_t kLongCluster = 6;  // these are only replaced character by character

  [[noreturn]] static void bad(const std::string& rule) {
    throw TokenizerError("normalizer Precompiled: `precompiled_charsmap`: must " + rule);
  }

  static std::size_t trie_bytes(const std::string& blob) {
    return blob.size() < 4 ? 0 : unit_at(blob, 0);
  }
  static uint32_t unit_at(const std::string& blob, std::size_t at) {
    uint32_t unit = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      unit |= static_cast<uint32_t>(static_cast<unsigned char>(blob[at + i])) << (8 * i);
    }
    return unit;
  }
  static std::vector<uint32_t> units_of(const std::string& blob) {
    const std::size_t bytes = trie_bytes(blob);
    if (bytes == 0 || bytes % 4 != 0 || bytes > blob.size() - 4) {
      bad("begin with the size of its trie, in bytes, and contain it");
    }
    std::vector<uint32_t> units(bytes / 4);
    for (std::size_t i = 0; i < units.size(); ++i) units[i] = unit_at(blob, 4 + 4 * i);
    return units;
  }

  std::size_t cluster_end(const std::string& text, std::size_t at) const {
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool is_alone = at + 1 == text.size() || static_cast<unsigned char>(text[at + 1]) < 0x80;
    if (byte < 0x80 && byte != '\r' && is_alone) return at + 1;
    return unicode::grapheme_end(text, at);
  }

  static std::size_t last_character(const std::string& text, std::size_t begin, std::size_t end) {
    std::size_t last = end - 1;
    while (last > begin && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    return last;
  }

  std::optional<std::string_view> find(std::string_view text) const {
    const auto value = trie_.shortest(text);
    if (!value) return std::nullopt;
    const std::string_view rest = std::string_view(texts_).substr(*value);
    return rest.substr(0, rest.find('\0'));
  }

  bool changes_cluster(std::string_view cluster) const {
    if (cluster.size() == 1) return !is_kept(cluster[0]) && find(cluster);
    if (cluster.size() < kLongCluster && find(cluster)) return true;
    for (std::size_t at = 0; at < cluster.size();) {
      const std::size_t begin = at;
      next_character(cluster, at);
      if (find(cluster.substr(begin, at - begin))) return true;
    }
    return false;
  }
  bool is_kept(char c) const {
    return static_cast<unsigned char>(c) < 0x80 && is_kept_[static_cast<unsigned char>(c)];
  }

  void add_cluster(std::string_view cluster, std::vector<Change>& changes) const {
    if (cluster.size() == 1 && is_kept(cluster[0])) {
      changes.push_back({static_cast<unsigned char>(cluster[0]), 0});
      return;
    }
    if (cluster.size() < kLongCluster) {
      if (const auto found = find(cluster)) return add_text(cluster, *found, changes);
    }
    for (std::size_t at = 0; at < cluster.size();) {
      const std::size_t begin = at;
      const char32_t c = next_character(cluster, at);
      const std::string_view one = cluster.substr(begin, at - begin);
      if (const auto found = find(one)) {
        add_text(one, *found, changes);
      } else {
        changes.push_back({c, 0});
      }
    }
  }

  // The package's accounts: what is missing is charged to the last change, even one of a character
  // before, and to none at the begin of the text.
  static void add_text(std::string_view old, std::string_view text, std::vector<Change>& changes) {
    int64_t more = 0;
    for (std::size_t at = 0; at < old.size(); --more) next_character(old, at);
    for (std::size_t at = 0; at < text.size(); ++more)
      changes.push_back({next_character(text, at), 0});
    for (std::size_t i = 1; more > 0 && i <= static_cast<std::size_t>(more) && i <= changes.size();
         ++i) {
      changes[changes.size() - i].change = 1;
    }
    if (more < 0 && !changes.empty()) changes.back().change += static_cast<int32_t>(more);
  }

  DoubleArray trie_;
  std::string texts_;  // each ends with NUL
  std::array<bool, 128> is_kept_{};
};

}  // namespace

NormalizerPtr make_precompiled(const Component& component) {
  const auto blob = decode_base64(component.string("precompiled_charsmap"));
  if (!blob || blob->empty()) {
    component.refuse("precompiled_charsmap", "the rules of a SentencePiece model in base64");
  }
  return std::make_unique<Precompiled>(*blob);
}

}  // namespace posenc::text
