#include "platform/caches.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace posenc::platform {
namespace {

// Reads what Linux reports for the first processor, such as `32768K`. (sysconf multiplies the
// last-level cache of some AMD processors by the number of its instances.)
int64_t cache_size(int index, int64_t otherwise) {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
  int64_t kilobytes = 0;
  char unit = 0;
  return file >> kilobytes >> unit && unit == 'K' && kilobytes > 0 ? kilobytes << 10 : otherwise;
}

Caches ask() {
  const int64_t level2 = cache_size(2, int64_t{1} << 20);
  const int64_t level3 = cache_size(3, int64_t{32} << 20);
  return {level2, std::max(int64_t{16} << 20, level3 / 2)};
}

}  // namespace

const Caches& caches() {
  static const Caches found = ask();
  return found;
}

}  // namespace posenc::platform
