#include "posenc/tokenizers/error.h"

#include <utility>

namespace posenc {
namespace {

std::string tokenizer_sentence(const std::string& function, const std::string& file,
                               const std::string& reason) {
  return (function.empty() ? "" : "[" + function + "] ") + (file.empty() ? "" : file + ": ") +
         reason;
}

}  // namespace

TokenizerError::TokenizerError(std::string reason, TokenizerErrorCode code)
    : TokenizerError(code, "", "", std::move(reason)) {}

TokenizerError::TokenizerError(TokenizerErrorCode code, std::string function, std::string file,
                               std::string reason)
    : Error(tokenizer_sentence(function, file, reason)),
      code_(code),
      function_(std::move(function)),
      file_(std::move(file)),
      reason_(std::move(reason)) {}

TokenizerError TokenizerError::in_file(const std::string& path) const {
  return TokenizerError(code_, function_, file_.empty() ? path : file_, reason_);
}

TokenizerError TokenizerError::in_function(const std::string& function) const {
  return TokenizerError(code_, function_.empty() ? function : function_, file_, reason_);
}

}  // namespace posenc
