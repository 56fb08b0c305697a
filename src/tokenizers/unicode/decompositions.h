#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace posenc::text::unicode {

/// Finds a character among some thousands: of each 64 characters, which ones are among them, and
/// how many are before these.
struct DecompositionIndex {
  const uint8_t* blocks;    // of each 64 characters; 0 for those with none
  const uint64_t* present;  // of each block
  const uint16_t* before;   // of each block
  const uint16_t* begins;   // of each character, and the end of the last

  std::size_t rank(char32_t c) const {
    const std::size_t block = blocks[c >> 6];
    return before[block] + std::popcount(present[block] & ((uint64_t{1} << (c & 63)) - 1));
  }
};

/// Full decompositions, in UTF-16.
struct Decompositions {
  DecompositionIndex index;
  const char16_t* units;

  /// That of a character that is known to have one.
  std::u16string_view operator[](char32_t c) const {
    const std::size_t rank = index.rank(c);
    return {units + index.begins[rank],
            static_cast<std::size_t>(index.begins[rank + 1] - index.begins[rank])};
  }
};

extern const Decompositions kCanonical, kCompatible;

/// Holds what a DecompositionIndex refers to.
template <std::size_t kCount>
struct DecompositionArrays {
  std::array<uint8_t, 0x30000 / 64> blocks{};
  std::array<uint64_t, 256> present{};
  std::array<uint16_t, 256> before{};
  std::array<uint16_t, kCount + 1> begins{};

  constexpr DecompositionIndex view() const {
    return {blocks.data(), present.data(), before.data(), begins.data()};
  }
};

/// From the distance of each character to the one before it, and the length of its decomposition.
template <std::size_t kCount>
consteval DecompositionArrays<kCount> make_index(const uint32_t (&gaps)[kCount],
                                                 const uint8_t (&lengths)[kCount]) {
  DecompositionArrays<kCount> made;
  std::size_t block_count = 0;
  uint32_t c = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    c += gaps[i];
    uint8_t& block = made.blocks[c >> 6];
    if (block == 0) {
      block = static_cast<uint8_t>(++block_count);
      made.before[block] = static_cast<uint16_t>(i);
    }
    made.present[block] |= uint64_t{1} << (c & 63);
    made.begins[i + 1] = static_cast<uint16_t>(made.begins[i] + lengths[i]);
  }
  return made;
}

}  // namespace posenc::text::unicode
