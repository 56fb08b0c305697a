#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "posenc/text/tokenizer.h"

namespace posenc::text {

/// What single tokens are in the middle of a text, in bytes, of which some may be parts of a
/// character. As transformers' StopStringCriteria finds it.
class TokenBytes {
 public:
  explicit TokenBytes(const Tokenizer& tokenizer);

  /// The bytes of a token; none if the tokenizer does not list such an id, as M2M-100's does not
  /// list its languages.
  std::string of(int64_t id) const;

 private:
  Tokenizer tokenizer_;
  std::vector<int64_t> before_;  // tokens of a text that precedes
};

}  // namespace posenc::text
