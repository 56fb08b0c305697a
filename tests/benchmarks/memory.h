#pragma once

#include <cstring>
#include <fstream>
#include <string>

namespace posenc::benchmarks {

/// Resident memory in MB, from a field of /proc/self/status: VmRSS is the current value, VmHWM the
/// peak since reset_peak().
inline double resident(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field, 0) == 0) return std::stod(line.substr(std::strlen(field) + 1)) / 1024;
  }
  return 0;
}
inline void reset_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

}  // namespace posenc::benchmarks
