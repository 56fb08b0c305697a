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

void AlignedText::assign(std::string_view original, uint32_t at, bool with_places) {
  text_ = original;
  places_.clear();
  at_ = at;
  nothing_ = 0;
  with_places_ = with_places;
}

void AlignedText::append(const AlignedText& piece, std::size_t begin, std::size_t end) {
  if (text_.empty() && piece.places_.empty()) at_ = static_cast<uint32_t>(piece.at_ + begin);
  if (with_places_) {
    const bool continues =
        places_.empty() && piece.places_.empty() && at_ + text_.size() == piece.at_ + begin;
    if (!continues) {
      keep_places();
      for (std::size_t i = begin; i < end; ++i) places_.push_back(piece.place_of(i));
    }
  }
  text_.append(piece.text_, begin, end - begin);
  require_length(text_.size());
}

Place AlignedText::place_of(std::size_t byte) const {
  if (!places_.empty()) return places_[byte];
  while (is_inside_character(text_[byte])) --byte;
  const auto begin = static_cast<uint32_t>(at_ + byte);
  return {begin,
          static_cast<uint32_t>(begin + utf8_length(static_cast<unsigned char>(text_[byte])))};
}

Place AlignedText::place(std::size_t begin, std::size_t end) const {
  if (!with_places_) return {0, 0};
  return {place_of(begin).begin, place_of(end - 1).end};
}

void AlignedText::keep_places() {
  if (!places_.empty()) return;
  places_.reserve(text_.size());
  std::vector<Place> places;
  places.reserve(text_.size());
  for (std::size_t i = 0; i < text_.size(); ++i) places.push_back(place_of(i));
  places_ = std::move(places);
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
    if (with_places_) {
      keep_places();
      std::fill_n(places_.begin(), first, Place{at_, at_});
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
  text_.next_places_.clear();
  if (!text_.places_.empty()) {
    aligned_ = true;
    text_.next_places_.assign(text_.places_.begin(),
                              text_.places_.begin() + static_cast<std::ptrdiff_t>(old_));
  }
}

// Until now every byte that was written stands for the one at its own place.
void AlignedText::Edit::align() {
  aligned_ = true;
  text_.next_places_.reserve(text_.text_.size() + 16);
  for (std::size_t i = 0; i < text_.next_text_.size(); ++i) {
    text_.next_places_.push_back(text_.place_of(i));
  }
}

void AlignedText::Edit::copy(std::size_t bytes) {
  text_.next_text_.append(text_.text_, old_, bytes);
  require_length(text_.next_text_.size());
  if (!aligned_) return;
  if (text_.places_.empty()) {
    for (std::size_t i = old_; i < old_ + bytes; ++i) {
      text_.next_places_.push_back(text_.place_of(i));
    }
  } else {
    const auto from = text_.places_.begin() + static_cast<std::ptrdiff_t>(old_);
    text_.next_places_.insert(text_.next_places_.end(), from,
                              from + static_cast<std::ptrdiff_t>(bytes));
  }
}

void AlignedText::Edit::insert(std::string_view text) {
  if (text.empty()) return;
  start(false);
  if (old_ == 0) nothing_ += text.size();
  if (aligned_) {
    const Place place = old_ > 0 ? text_.place_of(old_ - 1) : Place{text_.at_, text_.at_};
    text_.next_places_.insert(text_.next_places_.end(), text.size(), place);
  }
  text_.next_text_ += text;
  require_length(text_.next_text_.size());
}

void AlignedText::Edit::finish() {
  if (!changed_) return;
  keep(text_.text_.size() - old_);
  text_.text_.swap(text_.next_text_);
  text_.places_.swap(text_.next_places_);
  if (!aligned_) text_.places_.clear();
  text_.nothing_ += static_cast<uint32_t>(nothing_);
}

}  // namespace posenc::text
