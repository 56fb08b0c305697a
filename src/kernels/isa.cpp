#include "kernels/isa.h"

#include <cpuid.h>

#include <cstdlib>
#include <cstring>

namespace posenc::kernels {
namespace {

const char* const kNames[kIsaCount] = {"sse2", "avx2", "avx512"};

// Asked of the processor itself: __builtin_cpu_supports of clang before 15 does not know the name.
// Whether the system keeps the wide registers is what "avx2" answers.
bool has_f16c() {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

bool runs(Isa isa) {
  switch (isa) {
    case Isa::Sse2: return true;
    case Isa::Avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    case Isa::Avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl");
  }
  return false;
}

Isa choose() {
  Isa isa = Isa::Sse2;
  const char* wish = std::getenv("POSENC_ISA");
  if (wish != nullptr && find_isa(wish, &isa)) return isa;
  return runs(Isa::Avx512) ? Isa::Avx512 : runs(Isa::Avx2) ? Isa::Avx2 : Isa::Sse2;
}

}  // namespace

bool find_isa(const char* name, Isa* found) {
  for (int i = 0; i < kIsaCount; ++i) {
    if (std::strcmp(kNames[i], name) != 0) continue;
    *found = static_cast<Isa>(i);
    return runs(*found);
  }
  return false;
}

Isa chosen_isa() {
  static const Isa isa = choose();
  return isa;
}

}  // namespace posenc::kernels
