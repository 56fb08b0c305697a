#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Python's methods of strings, for classes of transformers that are written in Python.
namespace posenc::text::python {

/// str.isspace() of a character.
bool is_space(char32_t c);
/// str.lstrip() and str.rstrip() without arguments.
std::string_view left_stripped(std::string_view text);
std::string_view right_stripped(std::string_view text);
inline std::string_view stripped(std::string_view text) {
  return left_stripped(right_stripped(text));
}
/// str.split() without arguments.
std::vector<std::string_view> split(std::string_view text);
/// str.splitlines().
std::vector<std::string_view> lines(std::string_view text);
/// str.lower().
std::string lower(std::string_view text);
/// Whether str.find(what) is not -1; as a name for what it means.
inline bool contains(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}

}  // namespace posenc::text::python
