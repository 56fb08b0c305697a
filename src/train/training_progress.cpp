#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "posenc/train/trainer.h"

namespace posenc {
namespace {

// Formats a non-negative number with thousands separators: 45600.4 as `45,600`.
std::string grouped(double number) {
  const std::string digits = fmt::format("{:.0f}", number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

// Formats seconds as 1:02:03, 2:31 or 0:09.
std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::max(seconds, 0.0)));
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60, rest = whole % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, rest)
                   : fmt::format("{}:{:02}", minutes, rest);
}

}  // namespace

std::string TrainingProgress::to_string() const {
  return fmt::format("step {}/{}  loss {:.4f}  {} tokens/s  {} left", step, steps, loss,
                     grouped(tokens_per_second), clock_text(seconds_left));
}

}  // namespace posenc
