#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace posenc::cli {

/// A line on stderr that says how far a long work is; silent where that is no terminal and for what
/// is done in a second.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(uint64_t bytes, uint64_t of);
  /// The same in words: "12 lines".
  void show(const std::string& state);

 private:
  std::string what_;
  std::chrono::steady_clock::time_point next_;  // nothing is shown before
  bool terminal_;
  bool shown_ = false;
};

/// "3.2 GB", as disks count.
std::string size_text(uint64_t bytes);

}  // namespace posenc::cli
