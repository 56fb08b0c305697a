#include "tokenizers/normalizers/kinds.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tokenizers/definition/base64.h"
#include "tokenizers/normalizers/charsmap.h"
#include "tokenizers/unicode/unicode.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

class Precompiled : public Normalizer {
 public:
  explicit Precompiled(const std::string& blob) : charsmap_(blob, "normalizer Precompiled") {
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
    return charsmap_.of_shortest(text);
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

  Charsmap charsmap_;
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
