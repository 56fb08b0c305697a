#include "cli/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cli/error.h"
#include "platform/number.h"

namespace posenc::cli {
namespace {

std::string got(const std::string& text) {
  return ". Got " + (text.empty() ? "an empty string" : text);
}

// CLI11 expects "" for a valid value, otherwise the message.
template <typename IsRight>
CLI::Validator validator(const std::string& description, const std::string& rule,
                         IsRight is_right) {
  return {[=](const std::string& text) {
            return is_right(text) ? std::string() : "must be " + rule + got(text);
          },
          description};
}

}  // namespace

std::optional<int64_t> whole_number(const std::string& text) {
  return platform::parse_number<int64_t>(text);
}

std::optional<double> real_number(const std::string& text) {
  const auto value = platform::parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

CLI::Validator whole(int64_t least, int64_t most) {
  const bool open = most == std::numeric_limits<int64_t>::max();
  const std::string range =
      open ? fmt::format("of at least {}", least) : fmt::format("from {} to {}", least, most);
  return validator("", "a whole number " + range, [=](const std::string& text) {
    const auto value = whole_number(text);
    return value && *value >= least && *value <= most;
  });
}

CLI::Validator choice(const std::vector<std::string>& words) {
  return {[=](const std::string& text) {
            if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
            return fmt::format("must be {}{}{}", fmt::join(words, " or "), got(text),
                               did_you_mean(text, words));
          },
          fmt::format("{}", fmt::join(words, "|"))};
}

CLI::Validator assignment() {
  return {[](const std::string& text) {
            const auto equals = text.find('=');
            const bool good = equals != std::string::npos && equals > 0 && equals + 1 < text.size();
            return good ? std::string() : "must have the form key=value" + got(text);
          },
          "key=value"};
}

CLI::Validator input_path() {
  return validator("", "the name of a file", [](const std::string& text) { return !text.empty(); });
}

CLI::Validator output_path() {
  return {
      [](const std::string& text) {
        if (text == "-") {
          return std::string(
              "must name a file, since files are replaced atomically. Got -; use ./- for a file "
              "of that name");
        }
        return text.empty() ? "must name a file" + got(text) : std::string();
      },
      ""};
}

}  // namespace posenc::cli
