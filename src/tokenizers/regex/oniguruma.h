#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "tokenizers/regex/regex.h"

namespace posenc::text {

/// An expression that Oniguruma has compiled.
class OnigurumaRegex {
 public:
  /// Throws TokenizerError.
  explicit OnigurumaRegex(std::string_view expression);

  /// Finds the first match that begins at `from` or later. Throws TokenizerError where that takes
  /// too long.
  bool search(std::string_view text, std::size_t from, Pattern::Match& match) const;

 private:
  struct Free {
    void operator()(void* regex) const;
  };
  std::unique_ptr<void, Free> regex_;
};

/// An expression for any Oniguruma from 6.9.8 on, in which `\w`, `\b`, `\p{L}` and so on have
/// become the characters of Unicode 16.0, which 6.9.10 knows. Throws TokenizerError for what has
/// other characters there and no table here, by its name.
std::string with_unicode_16(std::string_view expression);

}  // namespace posenc::text
