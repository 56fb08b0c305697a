#pragma once

#include <c10/util/Exception.h>

#include <string>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// Thrown for the files of a tokenizer: missing, malformed, or with a part that posenc lacks.
/// what() has the form `[function] file: part: rule. Got value`, without a backtrace.
class TokenizerError : public c10::Error {
 public:
  /// `reason` names the part of the file, the rule and the value.
  explicit TokenizerError(std::string reason);

  /// Returns the error with the path of the file, unless it has one.
  TokenizerError in_file(const std::string& path) const;
  /// Returns the error with the name of the function, unless it has one.
  TokenizerError in_function(const std::string& function) const;

 private:
  TokenizerError(std::string function, std::string file, std::string reason);

  std::string function_, file_, reason_;
};

}  // namespace posenc
