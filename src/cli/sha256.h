#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace posenc::cli {

/// Incremental SHA-256 (FIPS 180-4).
class Sha256 {
 public:
  void update(const void* data, std::size_t count);

  /// The digest in hexadecimal. Ends the computation: no update() may follow.
  std::string hex();

 private:
  void add_block(const unsigned char* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_{};  ///< bytes not yet hashed
  uint64_t bytes_ = 0;
};

}  // namespace posenc::cli
