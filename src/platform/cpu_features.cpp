#include "platform/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>

namespace posenc::platform {
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

bool runs_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}

}  // namespace posenc::platform
#endif
