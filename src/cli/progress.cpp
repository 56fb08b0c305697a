#include "cli/progress.h"
#include "base/platform/streams.h"

#include <fmt/format.h>
#include <cstdio>
#include <utility>

namespace posenc::cli {
namespace {

// For a terminal: the next output overwrites the line.
constexpr const char* kEraseLine = "\r\033[K";

constexpr auto kFirst = std::chrono::seconds(1);
constexpr auto kBetween = std::chrono::milliseconds(200);

}  // namespace

Progress::Progress(std::string what, std::function<Clock::time_point()> now)
    : what_(std::move(what)),
      now_(std::move(now)),
      next_(now_() + kFirst),
      terminal_(platform::stderr_is_terminal()) {}

Progress::~Progress() { hide(); }

void Progress::hide() {
  if (shown_) std::fputs(kEraseLine, stderr);
  shown_ = false;
}

void Progress::show(uint64_t bytes, uint64_t of) {
  if (of == 0) return;
  show(fmt::format("{:.0f} % of {}", 100.0 * static_cast<double>(bytes) / static_cast<double>(of),
                   size_text(of)));
}

void Progress::show(const std::string& state) {
  if (!terminal_) return;
  const Clock::time_point now = now_();
  if (now < next_) return;
  next_ = now + kBetween;
  shown_ = true;
  std::fputs(fmt::format("{}{}: {}", kEraseLine, what_, state).c_str(), stderr);
  std::fflush(stderr);
}

std::string size_text(uint64_t bytes) {
  auto size = static_cast<double>(bytes);
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  const char* unit = "kB";
  for (const char* next : {"MB", "GB", "TB"}) {
    if ((size /= 1000) < 1000) return fmt::format("{:.1f} {}", size, unit);
    unit = next;
  }
  return fmt::format("{:.1f} {}", size / 1000, unit);
}

}  // namespace posenc::cli
