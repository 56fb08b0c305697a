#include <cstdlib>
#include <cstring>

#include "kernels/exact/kernels.h"

namespace posenc::kernels::exact {
namespace {

struct Candidate {
  const Kernels* kernels;
  bool (*runs)();
};

// Fastest first. All give the same bits: the choice is one of speed only.
const Candidate kCandidates[] = {
    {&avx512::kernels,
     [] {
       return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512vl");
     }},
    {&avx2::kernels,
     [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }},
    {&sse2::kernels, [] { return true; }},
};

}  // namespace

const Kernels* find_kernels(const char* name) {
  for (const Candidate& c : kCandidates) {
    if (std::strcmp(c.kernels->name, name) == 0) return c.runs() ? c.kernels : nullptr;
  }
  return nullptr;
}

const Kernels& kernels() {
  static const Kernels* const chosen = [] {
    const char* wish = std::getenv("POSENC_ISA");
    const Kernels* found = wish != nullptr ? find_kernels(wish) : nullptr;
    for (int i = 0; found == nullptr; ++i)
      found = kCandidates[i].runs() ? kCandidates[i].kernels : nullptr;
    return found;
  }();
  return *chosen;
}

}  // namespace posenc::kernels::exact
