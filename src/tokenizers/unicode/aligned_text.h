#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/unicode/utf8.h"

namespace posenc::text {

/// A text has fewer bytes than this, since offsets are 32 bits wide.
constexpr std::size_t kTextLimit = UINT32_MAX;

/// A part of a text: bytes from begin to end.
struct Span {
  uint32_t begin, end;

  bool operator==(const Span&) const = default;
};

/// One character of a changed text. `change` says what it stands for: 0 for the next character of
/// the old text, 1 for none (it is inserted, and shares the span of the old byte before it), and
/// -n for the next one and n more, of which it has the span of the first.
struct Change {
  char32_t character;
  int32_t change;
};

/// A text while it is changed, and the span of each of its bytes: the bytes of the original
/// character that it replaces. The spans are only kept if they are asked for, and only from the
/// first step on that changes the length of a character: until then each byte is at its own offset.
class AlignedText {
 public:
  class Edit;

  AlignedText() = default;
  /// A copy of `original`, which begins at byte `at` of the text that offsets refer to.
  AlignedText(std::string_view original, uint32_t at, bool with_offsets) {
    assign(original, at, with_offsets);
  }
  /// The same, in the memory of this one.
  void assign(std::string_view original, uint32_t at, bool with_offsets);
  /// Adds bytes begin to end of `piece`, which keeps offsets if this text does.
  void append(const AlignedText& piece, std::size_t begin, std::size_t end);

  const std::string& text() const { return text_; }
  bool with_offsets() const { return with_offsets_; }
  /// The original characters of bytes begin to end of text(), which are not empty: from the begin
  /// of the first to the end of the last. (0, 0) unless offsets are kept.
  Span original_span(std::size_t begin, std::size_t end) const;
  /// Where the original character begins that a byte stands for; if offsets are not kept, only
  /// until the text is changed.
  std::size_t original_begin(std::size_t byte) const {
    return spans_.empty() ? at_ + byte : spans_[byte].begin;
  }
  /// Whether the text begins with characters that stand for nothing.
  bool begins_with_nothing() const { return nothing_ > 0; }
  /// Throws TokenizerError if it does: `tokenizers` panics where another step follows.
  void require_begin() const {
    if (begins_with_nothing()) refuse_begin();
  }
  [[noreturn]] static void refuse_begin();
  /// Throws TokenizerError for a text that a step has made too long.
  static void require_length(std::size_t bytes) {
    if (bytes >= kTextLimit) refuse_length(bytes);
  }

  /// The bytes, for changes that leave the length of every character.
  char* bytes() { return text_.data(); }

  /// Puts `prefix` before the first character, with its span. The text is not empty. As in the
  /// package, an empty prefix takes the span of the first character away.
  void prepend(std::string_view prefix);
  /// Replaces what begins at byte `begin` by `changes`.
  void transform(std::span<const Change> changes, std::size_t begin = 0);

 private:
  Span span_of(std::size_t byte) const;  // of the character there
  void keep_spans();                     // from here on
  [[noreturn]] static void refuse_length(std::size_t bytes);

  std::string text_;
  std::vector<Span> spans_;  // of each byte; empty while every byte stands for itself
  std::string next_text_;    // what an Edit writes; memory that is used again
  std::vector<Span> next_spans_;
  uint32_t at_ = 0;       // of the first byte, while spans_ is empty
  uint32_t nothing_ = 0;  // bytes at the begin that stand for nothing
  bool with_offsets_ = false;
};

/// Rewrites a text from its begin to its end. What has not been named when it is finished is kept.
class AlignedText::Edit {
 public:
  explicit Edit(AlignedText& text) : text_(text) {}
  Edit(const Edit&) = delete;
  Edit& operator=(const Edit&) = delete;

  /// The byte of the old text that is next.
  std::size_t at() const { return old_; }
  /// Number of bytes that have been written.
  std::size_t written() const { return changed_ ? text_.next_text_.size() : old_; }

  /// Keeps the next bytes.
  void keep(std::size_t bytes) {
    if (changed_) copy(bytes);
    old_ += bytes;
  }
  /// Writes `text` in place of the next bytes, one or more whole characters, with the span of the
  /// first.
  void replace(std::size_t bytes, std::string_view text) {
    // One character for another of the same length leaves every byte where it was.
    start(text.size() == bytes && length(text[0]) == bytes && length(text_.text_[old_]) == bytes);
    if (aligned_) {
      text_.next_spans_.insert(text_.next_spans_.end(), text.size(), text_.span_of(old_));
    }
    text_.next_text_ += text;
    require_length(text_.next_text_.size());
    old_ += bytes;
  }
  /// Drops the next bytes.
  void drop(std::size_t bytes) {
    if (bytes == 0) return;
    start(false);
    old_ += bytes;
  }
  /// Writes `text`, with the span of the old byte before it.
  void insert(std::string_view text);
  void finish();

 private:
  static std::size_t length(char lead) { return utf8_length(static_cast<unsigned char>(lead)); }
  void start(bool same_length) {
    if (!changed_) begin();
    if (!same_length && !aligned_ && text_.with_offsets_) align();
  }
  void begin();
  void align();
  void copy(std::size_t bytes);

  AlignedText& text_;
  std::size_t old_ = 0;
  std::size_t nothing_ = 0;
  bool changed_ = false;  // what is written is in next_text_, and not the old text itself
  bool aligned_ = false;  // its spans are in next_spans_
};

}  // namespace posenc::text
