#pragma once

#include <string>

#include "posenc/base/error.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// The kind of a TokenizerError.
enum class TokenizerErrorCode {
  File,    ///< the system cannot read a file, or there is none
  Format,  ///< a file violates its format, or has a part that posenc lacks
  Limit,   ///< a file or a search is beyond a limit
};

/// Thrown for the files of a tokenizer: missing, malformed, or with a part that posenc lacks; and
/// where a search takes too long.
/// what() has the form `[function] file: part: rule. Got value`.
class TokenizerError : public Error {
 public:
  /// `reason` names the part of the file, the rule and the value.
  explicit TokenizerError(std::string reason, TokenizerErrorCode code = TokenizerErrorCode::Format);

  /// Returns the error with the path of the file, unless it has one.
  TokenizerError in_file(const std::string& path) const;
  /// Returns the error with the name of the function, unless it has one.
  TokenizerError in_function(const std::string& function) const;

  /// The kind of the error.
  TokenizerErrorCode code() const noexcept { return code_; }

 private:
  TokenizerError(TokenizerErrorCode code, std::string function, std::string file,
                 std::string reason);

  TokenizerErrorCode code_;
  std::string function_, file_, reason_;
};

}  // namespace posenc
