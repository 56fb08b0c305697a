#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::text::jinja {

/// The bytes of the blank of Python's str.isspace() that begins at a byte of the text, which is
/// UTF-8; 0 if none does.
std::size_t blank_at(std::string_view text, std::size_t at);
/// The same of the blank that ends at a byte.
std::size_t blank_before(std::string_view text, std::size_t end);

std::u32string characters_of(std::string_view text);
std::string utf8_of(std::u32string_view characters);

/// str.strip(), or lstrip() or rstrip() with one of the flags, of blanks or of given characters.
std::string stripped(std::string_view text, const std::optional<std::string>& characters = {},
                     bool left = true, bool right = true);
/// str.split() and rsplit() by blanks or by a text that is not empty; `most`: -1 for all.
std::vector<std::string> split(std::string_view text, const std::optional<std::string>& separator,
                               int64_t most, bool from_right = false);
/// str.splitlines().
std::vector<std::string> split_lines(std::string_view text, bool keep_ends = false);
/// str.replace() of a text that is not empty; `most`: -1 for all.
std::string replaced(std::string_view text, const std::string& from, const std::string& to,
                     int64_t most);

/// str.lower(), upper(), title(), capitalize(): nothing for a text of which they are not known.
std::optional<std::string> lowered(std::string_view text);
std::optional<std::string> uppered(std::string_view text);
std::optional<std::string> titled(std::string_view text);
std::optional<std::string> capitalized(std::string_view text);

/// Python's repr() of a text.
std::string represented_text(std::string_view text);

}  // namespace posenc::text::jinja
