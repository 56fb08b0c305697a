#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <thread>

namespace posenc::testing {

inline std::set<std::string> threads_of_process() {
  std::set<std::string> ids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    ids.insert(entry.path().filename().string());
  return ids;
}

/// How many threads the process has after f() that it did not have before. f() runs in a thread of
/// its own, for which OpenMP starts all others anew and keeps them until it ends.
template <typename F>
int new_threads(const F& f) {
  int started = 0;
  std::thread([&] {
    const auto before = threads_of_process();
    f();
    for (const std::string& id : threads_of_process()) started += before.contains(id) ? 0 : 1;
  }).join();
  return started;
}

}  // namespace posenc::testing
