#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <stdexcept>
#include <utility>

namespace pronounce {

/// Throws a std::runtime_error with this message, which main() prints.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw std::runtime_error(fmt::format(format, std::forward<Args>(args)...));
}

/// Writes to stderr. Unlike fmt::print, does not throw if stderr is closed or full: training must
/// not end because nobody reads its progress.
template <typename... Args>
void note(fmt::format_string<Args...> format, Args&&... args) {
  std::fputs(fmt::format(format, std::forward<Args>(args)...).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace pronounce
