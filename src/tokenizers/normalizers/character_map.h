#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "tokenizers/normalizers/normalizer.h"

namespace posenc::text {

/// What a map makes of a character.
struct Mapped {
  std::string text;         // nothing: the character is dropped
  bool is_unclear = false;  // it depends on the characters around it
};

/// A normaliser that replaces each character by a text of its own, which may be the same or
/// nothing. What becomes of a character is found out when it is first met, 256 characters at a
/// time: a table of all would take a megabyte and milliseconds to make.
class CharacterMap {
 public:
  using Function = std::function<Mapped(char32_t)>;

  explicit CharacterMap(Function function);
  ~CharacterMap();
  CharacterMap(const CharacterMap&) = delete;
  CharacterMap& operator=(const CharacterMap&) = delete;

  /// Returns false, and changes nothing but bytes that map() would change too, at a character that
  /// is unclear.
  bool map(AlignedText& text) const;

 private:
  // The bytes of the new text, and how many; or one of the two special numbers.
  struct Entry {
    uint8_t size;
    char bytes[15];
  };
  using Block = std::array<Entry, 256>;
  static constexpr uint8_t kSame = 255, kUnclear = 254;
  static constexpr uint8_t kOther = 0xFF;  // not an ASCII character that stays one

  Entry entry_of(char32_t character) const;
  const Entry& find(char32_t character) const;

  Function function_;
  std::array<uint8_t, 256> ascii_;  // what each byte becomes; kOther: look it up
  mutable std::array<std::atomic<const Block*>, 0x1100> blocks_{};
};

/// A normaliser that is nothing but such a map.
class MapNormalizer : public Normalizer {
 public:
  explicit MapNormalizer(CharacterMap::Function function) : map_(std::move(function)) {}

  void normalize(AlignedText& text) const override {
    text.require_begin();
    map_.map(text);
  }

 private:
  CharacterMap map_;
};

/// Bytes as characters that can be seen, as GPT-2 writes them.
const std::array<std::string, 256>& byte_level_alphabet();

NormalizerPtr make_lowercase();
NormalizerPtr make_strip_accents();
NormalizerPtr make_nmt();
NormalizerPtr make_byte_level_normalizer();

}  // namespace posenc::text
