#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posenc/train/trainer.h"
#include "train/grouped.h"

namespace posenc {
namespace {

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
                     train::grouped(tokens_per_second), clock_text(seconds_left));
}

}  // namespace posenc
