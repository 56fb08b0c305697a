#include "cli/sha256.h"

#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <array>

#include "cli/error.h"

namespace posenc::cli {

OpenSslSha256::OpenSslSha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) {
    fail("OpenSSL has no SHA-256");
  }
}

void OpenSslSha256::update(const void* data, std::size_t count) {
  if (EVP_DigestUpdate(context_.get(), data, count) != 1) fail("SHA-256 failed");
}

std::string OpenSslSha256::hex() {
  std::array<unsigned char, 32> digest{};
  if (EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) != 1) fail("SHA-256 failed");
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace posenc::cli
