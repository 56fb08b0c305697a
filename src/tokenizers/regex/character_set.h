#pragma once

#include <cstdint>
#include <vector>

namespace posenc::text {

/// A set of characters, as ascending ranges that do not touch.
class CharacterSet {
 public:
  struct Range {
    char32_t first, last;
    bool operator==(const Range&) const = default;
  };

  CharacterSet() = default;
  CharacterSet(char32_t first, char32_t last) : ranges_{{first, last}} {}
  /// The characters that have one of these categories (bits of unicode::Category), or flags
  /// (unicode::Flag).
  static CharacterSet of_categories(uint32_t categories);
  static CharacterSet of_flags(uint16_t flags);

  void add(char32_t first, char32_t last);
  void add(const CharacterSet& other);
  CharacterSet complement() const;
  CharacterSet intersection(const CharacterSet& other) const;
  bool contains(char32_t c) const;
  bool operator==(const CharacterSet&) const = default;
  bool is_empty() const { return ranges_.empty(); }
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  template <typename Predicate>
  static CharacterSet of_kinds(Predicate is_in);
  void sort();

  std::vector<Range> ranges_;
};

}  // namespace posenc::text
