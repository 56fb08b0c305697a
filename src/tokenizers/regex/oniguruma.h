#pragma once

#include <cstddef>
#include <memory>
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

}  // namespace posenc::text
