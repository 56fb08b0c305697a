#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace posenc::cli {

/// A progress line on stderr. Shows nothing if stderr is not a terminal, or if the work takes less
/// than a second.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Progress(std::string what, std::function<Clock::time_point()> now = Clock::now);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(uint64_t bytes, uint64_t of);
  /// The same in words: "12 lines".
  void show(const std::string& state);
  /// Removes the line, before other output, until the next show().
  void hide();

 private:
  std::string what_;
  std::function<Clock::time_point()> now_;
  Clock::time_point next_;  // nothing is shown earlier
  bool terminal_;
  bool shown_ = false;
};

/// "3.2 GB", in decimal units.
std::string size_text(uint64_t bytes);

}  // namespace posenc::cli
