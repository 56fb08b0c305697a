#pragma once

#include <string>
#include <string_view>

namespace posenc::text {

/// Replaces each `from` in `text`, from left to right. An empty `from` is found around each
/// character, as in Rust.
void replace_all(std::string& text, std::string_view from, std::string_view to);

}  // namespace posenc::text
