#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace posenc::io {

/// The little-endian integer at `at`; the caller has checked the bounds.
template <typename Integer>
Integer little_endian(std::string_view bytes, std::size_t at) {
  uint64_t value = 0;
  for (std::size_t i = sizeof(Integer); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return static_cast<Integer>(value);
}

}  // namespace posenc::io
