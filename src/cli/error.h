#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace posenc::cli {

/// The input was refused: exit status 1, the text on stderr behind the command's name.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Refused(fmt::format(format, std::forward<Args>(args)...));
}

/// What an exception has to say to a user: without LibTorch's backtrace and source lines.
std::string message_of(const std::exception& error);

/// "a, b, c"; of more than `most` names "a, b, and 3 more".
std::string listed(std::vector<std::string> names, std::size_t most = SIZE_MAX);

/// "; did you mean b? Known: a, b, c".
std::string suggestion(const std::string& wanted, const std::vector<std::string>& known);

}  // namespace posenc::cli
