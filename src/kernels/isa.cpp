#include "kernels/isa.h"

#include <cstdlib>
#include <cstring>

#include "platform/cpu_features.h"

namespace posenc::kernels {
namespace {

const char* const kNames[kIsaCount] = {"sse2", "avx2", "avx512"};

bool runs(Isa isa) {
  switch (isa) {
    case Isa::Sse2: return true;
    case Isa::Avx2: return platform::runs_avx2();
    case Isa::Avx512: return platform::runs_avx512();
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
