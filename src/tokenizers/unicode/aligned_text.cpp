#include "tokenizers/unicode/aligned_text.h"

#include <algorithm>
#include <string>
#include <utility>

#include "posenc/tokenizers/error.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

void AlignedText::assign(std::string_view original, uint32_t at, bool with_offsets) {
  text_ = original;
  spans_.clear();
  at_ = at;
  nothing_ = 0;
  with_offsets_ = with_offsets;
}

void AlignedText::append(const AlignedText& piece, std::size_t begin, std::size_t end) {
  if (text_.empty() && piece.spans_.empty()) at_ = static_cast<uint32_t>(piece.at_ + begin);
  if (with_offsets_) {
    const bool continues =
        spans_.empty() && piece.spans_.empty() && at_ + text_.size() == piece.at_ + begin;
    if (!continues) {
      keep_spans();
      for (std::size_t i = begin; i < end; ++i) spans_.push_back(piece.span_of(i));
    }
  }
  text_.append(piece.text_, begin, end - begin);
  require_length(text_.size());
}

Span AlignedText::span_of(std::size_t byte) const {
  if (!spans_.empty()) return spans_[byte];
  while (is_inside_character(text_[byte])) --byte;
  const auto begin = static_cast<uint32_t>(at_ + byte);
  return {begin,
          static_cast<uint32_t>(begin + utf8_length(static_cast<unsigned char>(text_[byte])))};
}

Span AlignedText::original_span(std::size_t begin, std::size_t end) const {
  if (!with_offsets_) return {0, 0};
  return {span_of(begin).begin, span_of(end - 1).end};
}

void AlignedText::keep_spans() {
  if (!spans_.empty()) return;
  spans_.reserve(text_.size());
  std::vector<Span> spans;
  spans.reserve(text_.size());
  for (std::size_t i = 0; i < text_.size(); ++i) spans.push_back(span_of(i));
  spans_ = std::move(spans);
}

void AlignedText::refuse_begin() {
  throw TokenizerError(
      "normalizer: must not change a text again whose first character stands for nothing, as "
      "Replace "
      "leaves it for a pattern such as `^`, and Prepend for an empty text; `tokenizers` panics "
      "there");
}

void AlignedText::refuse_length(std::size_t bytes) {
  throw TokenizerError("normalizer and pre-tokenizer: must leave a text of less than 4 GiB. Got " +
                       std::to_string(bytes) + " bytes");
}

void AlignedText::prepend(std::string_view prefix) {
  const std::size_t first = utf8_length(static_cast<unsigned char>(text_[0]));
  if (prefix.empty()) {
    if (with_offsets_) {
      keep_spans();
      std::fill_n(spans_.begin(), first, Span{at_, at_});
    }
    nothing_ = static_cast<uint32_t>(first);
    return;
  }
  std::string begin(prefix);
  begin.append(text_, 0, first);
  Edit edit(*this);
  edit.replace(first, begin);
  edit.finish();
}

void AlignedText::transform(std::span<const Change> changes, std::size_t begin) {
  require_begin();
  Edit edit(*this);
  edit.keep(begin);
  std::string one;
  for (const auto& [character, change] : changes) {
    one.clear();
    append_character(one, character);
    if (change > 0) {
      edit.insert(one);
      continue;
    }
    std::size_t bytes = 0;
    for (int32_t i = 0; i <= -change && edit.at() + bytes < text_.size(); ++i) {
      bytes += utf8_length(static_cast<unsigned char>(text_[edit.at() + bytes]));
    }
    edit.replace(bytes, one);
  }
  edit.drop(text_.size() - edit.at());
  edit.finish();
}

void AlignedText::Edit::begin() {
  changed_ = true;
  text_.next_text_.assign(text_.text_, 0, old_);
  text_.next_spans_.clear();
  if (!text_.spans_.empty()) {
    aligned_ = true;
    text_.next_spans_.assign(text_.spans_.begin(),
                             text_.spans_.begin() + static_cast<std::ptrdiff_t>(old_));
  }
}

// Until now every byte that was written stands for the one at its own offset.
void AlignedText::Edit::align() {
  aligned_ = true;
  text_.next_spans_.reserve(text_.text_.size() + 16);
  for (std::size_t i = 0; i < text_.next_text_.size(); ++i) {
    text_.next_spans_.push_back(text_.span_of(i));
  }
}

void AlignedText::Edit::copy(std::size_t bytes) {
  text_.next_text_.append(text_.text_, old_, bytes);
  require_length(text_.next_text_.size());
  if (!aligned_) return;
  if (text_.spans_.empty()) {
    for (std::size_t i = old_; i < old_ + bytes; ++i) {
      text_.next_spans_.push_back(text_.span_of(i));
    }
  } else {
    const auto from = text_.spans_.begin() + static_cast<std::ptrdiff_t>(old_);
    text_.next_spans_.insert(text_.next_spans_.end(), from,
                             from + static_cast<std::ptrdiff_t>(bytes));
  }
}

void AlignedText::Edit::insert(std::string_view text) {
  if (text.empty()) return;
  start(false);
  if (old_ == 0) nothing_ += text.size();
  if (aligned_) {
    const Span span = old_ > 0 ? text_.span_of(old_ - 1) : Span{text_.at_, text_.at_};
    text_.next_spans_.insert(text_.next_spans_.end(), text.size(), span);
  }
  text_.next_text_ += text;
  require_length(text_.next_text_.size());
}

void AlignedText::Edit::finish() {
  if (!changed_) return;
  keep(text_.text_.size() - old_);
  text_.text_.swap(text_.next_text_);
  text_.spans_.swap(text_.next_spans_);
  if (!aligned_) text_.spans_.clear();
  text_.nothing_ += static_cast<uint32_t>(nothing_);
}

}  // namespace posenc::text
