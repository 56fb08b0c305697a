#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace posenc::text {

/// U+FFFD, which stands for bytes that are not UTF-8.
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// `bytes`, in which each maximal part of a character that is not complete, and each other byte
/// that is not UTF-8, is replaced by U+FFFD, as in Rust's `from_utf8_lossy`.
std::string lossy_utf8(std::string bytes);

/// The same with U+FFFD for each single byte that is not UTF-8, as in SentencePiece.
std::string lossy_utf8_by_byte(std::string_view bytes);

/// `bytes` without those that are not UTF-8, as Python's `decode(errors="ignore")`.
std::string utf8_without_errors(std::string_view bytes);

/// The size of the character that begins at byte `at`; if it is not UTF-8, `is_whole` is false, and
/// the size is that of its longest part that could begin one (Unicode 16.0, table 3-7).
std::size_t measure_utf8(std::string_view bytes, std::size_t at, bool& is_whole);

}  // namespace posenc::text
