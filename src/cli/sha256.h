#pragma once

#include <cstddef>
#include <memory>
#include <string>

struct evp_md_ctx_st;

namespace posenc::cli {

/// Incremental SHA-256.
class Sha256 {
 public:
  Sha256();

  void update(const void* data, std::size_t count);

  /// The digest in hexadecimal. Ends the computation: no update() may follow.
  std::string hex();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

}  // namespace posenc::cli
