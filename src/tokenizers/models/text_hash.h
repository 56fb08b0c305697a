#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace posenc::text {

/// A hash of short texts, after W. Yi's wyhash, with a random key per process: no vocabulary and no
/// text can choose words that share a slot. (io::KeyedHash is proven, but takes three
/// times as long.)
class TextHash {
 public:
  uint64_t operator()(std::string_view text) const {
    const char* at = text.data();
    std::size_t left = text.size();
    uint64_t state = key_.first;
    for (; left > 16; left -= 16, at += 16)
      state = fold(word(at) ^ key_.second, word(at + 8) ^ state);
    uint64_t a = 0, b = 0;
    if (left >= 8) {
      a = word(at);
      b = word(at + left - 8);
    } else if (left >= 4) {
      a = half(at);
      b = half(at + left - 4);
    } else if (left > 0) {
      const auto byte = [&](std::size_t i) { return uint64_t{static_cast<unsigned char>(at[i])}; };
      a = byte(0) << 16 | byte(left / 2) << 8 | byte(left - 1);
    }
    return fold(key_.third ^ text.size(), fold(a ^ key_.second, b ^ state));
  }

  /// The hash of two numbers.
  uint64_t operator()(uint32_t a, uint32_t b) const {
    return fold((uint64_t{a} << 32 | b) ^ key_.first, key_.second);
  }

 private:
  struct Key {
    uint64_t first, second, third;
  };
  static const Key& process_key() {
    static const Key key = [] {
      std::random_device device;
      const auto word = [&] { return uint64_t{device()} << 32 | device() | 1; };
      return Key{word(), word(), word()};
    }();
    return key;
  }
  static uint64_t fold(uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide{a} * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  static uint64_t word(const char* at) {
    uint64_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  static uint64_t half(const char* at) {
    uint32_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }

  Key key_ = process_key();
};

}  // namespace posenc::text
