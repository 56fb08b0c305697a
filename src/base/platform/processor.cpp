#include "base/platform/processor.h"

#include <algorithm>
#ifdef __APPLE__
#include <sys/sysctl.h>
#else
#include <fstream>
#include <string>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && !defined(__APPLE__)
#include <sys/auxv.h>
#endif

namespace posenc::platform {
namespace {

#ifdef __APPLE__

// Apple's processors have several level 2 caches, the fast cores' first, and report no level 3.
constexpr const char* kLevel2 = "hw.perflevel0.l2cachesize";
constexpr const char* kLevel3 = "hw.l3cachesize";

int64_t cache_size(const char* name, int64_t otherwise) {
  int64_t bytes = 0;
  std::size_t size = sizeof bytes;
  return ::sysctlbyname(name, &bytes, &size, nullptr, 0) == 0 && bytes > 0 ? bytes : otherwise;
}

#else

constexpr int kLevel2 = 2;
constexpr int kLevel3 = 3;

// Reads what Linux reports for the first processor, such as `32768K`. (sysconf multiplies the
// last-level cache of some AMD processors by the number of its instances.)
int64_t cache_size(int index, int64_t otherwise) {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
  int64_t kilobytes = 0;
  char unit = 0;
  return file >> kilobytes >> unit && unit == 'K' && kilobytes > 0 ? kilobytes << 10 : otherwise;
}

#endif

Caches ask() {
  const int64_t level2 = cache_size(kLevel2, int64_t{1} << 20);
  const int64_t level3 = cache_size(kLevel3, int64_t{32} << 20);
  return {level2, std::max(int64_t{16} << 20, level3 / 2)};
}

}  // namespace

const Caches& caches() {
  static const Caches found = ask();
  return found;
}

#if defined(__x86_64__)
namespace {

// Reads CPUID itself: __builtin_cpu_supports does not know "f16c" in clang before 15. Its check for
// "avx2" includes whether the operating system saves the wide registers.
bool has_f16c() {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace

bool runs_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

bool runs_avx2vnni() {
  unsigned a, b, c, d;  // gcc 12 and clang before 17 do not know the name "avxvnni"
  return runs_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1u << 4) != 0;
}

bool runs_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}

bool runs_avx512vnni() { return runs_avx512() && __builtin_cpu_supports("avx512vnni"); }

bool runs_avx512bf16() { return runs_avx512vnni() && __builtin_cpu_supports("avx512bf16"); }
#elif defined(__aarch64__)
bool runs_neondot() {
#ifdef __APPLE__
  int found = 0;
  std::size_t size = sizeof found;
  return ::sysctlbyname("hw.optional.arm.FEAT_DotProd", &found, &size, nullptr, 0) == 0 &&
         found != 0;
#else
  return (::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#endif
}
#endif

}  // namespace posenc::platform
