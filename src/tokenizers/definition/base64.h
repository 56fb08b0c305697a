#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace posenc::text {

/// The bytes of `text` in base64 with padding; nothing if it is not that.
std::optional<std::string> decode_base64(std::string_view text);

/// The other way round.
std::string encode_base64(std::string_view bytes);

}  // namespace posenc::text
