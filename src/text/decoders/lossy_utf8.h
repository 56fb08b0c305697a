#pragma once

#include <string>
#include <string_view>

namespace posenc::text {

/// U+FFFD, which stands for bytes that are not UTF-8.
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// `bytes`, in which each maximal part of a character that is not complete, and each other byte
/// that is not UTF-8, is replaced by U+FFFD, as in Rust's `from_utf8_lossy`.
std::string lossy_utf8(std::string bytes);

}  // namespace posenc::text
