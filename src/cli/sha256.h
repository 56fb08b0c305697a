#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

struct evp_md_ctx_st;

namespace posenc::cli {

/// Incremental SHA-256 (FIPS 180-4) in plain C++.
class PlainSha256 {
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

#ifdef POSENC_HAS_OPENSSL
/// The same with OpenSSL, which is several times as fast, as it uses the processor's SHA
/// instructions.
class OpenSslSha256 {
 public:
  OpenSslSha256();

  void update(const void* data, std::size_t count);
  std::string hex();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};
using Sha256 = OpenSslSha256;
#else
using Sha256 = PlainSha256;
#endif

}  // namespace posenc::cli
