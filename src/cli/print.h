#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace posenc::cli {

/// fmt::print() to standard output. That of fmt 12 writes into the buffer of the stream itself, and
/// before its beginning once the disk is full.
template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace posenc::cli
