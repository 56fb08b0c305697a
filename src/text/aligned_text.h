#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::text {

/// A place in a text: bytes from begin to end.
struct Place {
  uint32_t begin, end;
};

/// One character of a changed text. `change` says what it stands for: 0 for the next character of the old
/// text, 1 for none (it is inserted, and shares the place of the old byte before it), and -n for the next
/// one and n more, of which it has the place of the first.
struct Change {
  char32_t character;
  int32_t change;
};

/// A text that normalizers change, and for each of its bytes the character of the original text that it
/// stands for, as the bytes of that character. The places are only kept if they are asked for, and only
/// from the first step on that changes anything: until then each character stands for itself.
class AlignedText {
 public:
  /// A copy of `original`, which begins at byte `at` of the text that offsets refer to.
  AlignedText(std::string_view original, uint32_t at, bool with_places);

  const std::string& text() const { return text_; }
  /// The original characters of bytes begin to end of text(): from the begin of the first to the end of the last.
  Place place(std::size_t begin, std::size_t end) const;

  /// Replaces all by `changes`; the first `skipped` old characters are dropped.
  void transform(std::span<const Change> changes, std::size_t skipped = 0);
  /// Replaces bytes begin to end by `changes`; the first `skipped` old characters of them are dropped.
  void transform(std::size_t begin, std::size_t end, std::span<const Change> changes, std::size_t skipped = 0);

 private:
  std::string text_;
  std::vector<Place> places_;  // of each byte; empty while every character stands for itself
  uint32_t at_;
  bool with_places_;
};

}  // namespace posenc::text
