#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace posenc {

/// A hash that is the same in every build, unlike std::hash: FNV-1a.
class Fingerprint {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) add_byte(static_cast<unsigned char>(byte));
  }
  /// The bytes of an integer, the lowest first.
  template <std::integral Integer>
  void add(Integer value) {
    for (std::size_t i = 0; i < sizeof value; ++i) {
      add_byte(static_cast<unsigned char>(static_cast<uint64_t>(value) >> (8 * i)));
    }
  }
  uint64_t value() const { return hash_; }

 private:
  void add_byte(unsigned char byte) { hash_ = (hash_ ^ byte) * 1099511628211u; }

  uint64_t hash_ = 14695981039346656037u;
};

}  // namespace posenc
