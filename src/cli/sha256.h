#pragma once

#include <cstddef>
#include <memory>
#include <string>

struct evp_md_ctx_st;

namespace posenc::cli {

/// SHA-256 of bytes that come in pieces.
class Sha256 {
 public:
  Sha256();

  void update(const void* data, std::size_t count);

  /// The digest in hexadecimal; nothing can be added after it.
  std::string hex();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

}  // namespace posenc::cli
