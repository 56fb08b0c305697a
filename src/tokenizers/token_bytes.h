#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tokenizers/loaded_tokenizer.h"

namespace posenc::text {

/// The bytes of a token in the middle of a text, of which some may be parts of a character; none if
/// the tokenizer does not list such an id, as M2M-100's does not list its languages. As
/// transformers' StopStringCriteria finds it.
std::string token_bytes(const std::shared_ptr<const LoadedTokenizer>& tokenizer, uint32_t id);

}  // namespace posenc::text
