#include "tokenizers/normalizers/character_map.h"

#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include "tokenizers/unicode/utf8.h"

namespace posenc::text {

CharacterMap::CharacterMap(Function function) : function_(std::move(function)) {
  ascii_.fill(kOther);
  for (char32_t c = 0; c < 0x80; ++c) {
    const Entry entry = entry_of(c);
    if (entry.size == kSame) ascii_[c] = static_cast<uint8_t>(c);
    if (entry.size == 1) ascii_[c] = static_cast<uint8_t>(entry.bytes[0]);
  }
}

CharacterMap::~CharacterMap() {
  for (const auto& block : blocks_) delete block.load(std::memory_order_relaxed);
}

CharacterMap::Entry CharacterMap::entry_of(char32_t character) const {
  Entry entry{};
  std::string same;
  append_character(same, character);
  const Mapped mapped = function_(character);
  if (mapped.text.size() > sizeof entry.bytes) {  // the longest have three characters of four bytes
    throw std::length_error("a character that becomes " + mapped.text);
  }
  if (mapped.is_unclear) {
    entry.size = kUnclear;
  } else if (mapped.text == same) {
    entry.size = kSame;
  } else {
    entry.size = static_cast<uint8_t>(mapped.text.size());
    std::memcpy(entry.bytes, mapped.text.data(), mapped.text.size());
  }
  return entry;
}

const CharacterMap::Entry& CharacterMap::find(char32_t character) const {
  auto& slot = blocks_[character >> 8];
  const Block* block = slot.load(std::memory_order_acquire);
  if (block == nullptr) {
    auto made = std::make_unique<Block>();
    for (char32_t i = 0; i < 256; ++i) {
      const char32_t c = (character & ~char32_t{0xFF}) + i;
      const bool is_surrogate = c >= 0xD800 && c < 0xE000;
      (*made)[i] = is_surrogate ? Entry{kSame, {}} : entry_of(c);
    }
    if (slot.compare_exchange_strong(block, made.get(), std::memory_order_acq_rel)) {
      block = made.release();
    }
  }
  return (*block)[character & 0xFF];
}

bool CharacterMap::map(AlignedText& text) const {
  const std::size_t size = text.text().size();
  char* bytes = text.bytes();
  AlignedText::Edit edit(text);
  std::size_t at = 0;
  while (at < size) {
    const uint8_t mapped = ascii_[static_cast<unsigned char>(bytes[at])];
    if (mapped != kOther) {
      bytes[at++] = static_cast<char>(mapped);
      continue;
    }
    const std::size_t begin = at;
    const Entry& entry = find(next_character(text.text(), at));
    if (entry.size == kSame) continue;
    if (entry.size == kUnclear) return false;
    edit.keep(begin - edit.at());
    if (entry.size == 0) {
      edit.drop(at - begin);
    } else {
      edit.replace(at - begin, {entry.bytes, entry.size});
    }
  }
  edit.finish();
  return true;
}

}  // namespace posenc::text
