#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::text {

/// The tokens of a text as a class in Python has them: strings, and where they are known their ids.
/// Its memory is used again for the next text.
class PythonTokens {
 public:
  void clear() {
    texts_.clear();
    entries_.clear();
  }
  /// Adds a token; without an id it is looked up.
  void add(std::string_view text, std::optional<uint32_t> id = std::nullopt) {
    texts_ += text;
    entries_.push_back({texts_.size(), id});
  }
  std::size_t size() const { return entries_.size(); }
  std::string_view text(std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : entries_[i - 1].end;
    return std::string_view(texts_).substr(begin, entries_[i].end - begin);
  }
  std::optional<uint32_t> id(std::size_t i) const { return entries_[i].id; }
  /// Removes the tokens from `begin` to `end`.
  void erase(std::size_t begin, std::size_t end) {
    const std::size_t from = begin == 0 ? 0 : entries_[begin - 1].end;
    const std::size_t bytes = end == 0 ? 0 : entries_[end - 1].end - from;
    texts_.erase(from, bytes);
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(begin),
                   entries_.begin() + static_cast<std::ptrdiff_t>(end));
    for (std::size_t i = begin; i < entries_.size(); ++i) entries_[i].end -= bytes;
  }

 private:
  struct Entry {
    std::size_t end;  // in texts_
    std::optional<uint32_t> id;
  };

  std::string texts_;
  std::vector<Entry> entries_;
};

}  // namespace posenc::text
