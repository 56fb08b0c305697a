#include "platform/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace posenc::platform {

void advise_huge_pages([[maybe_unused]] void* fresh, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr uintptr_t kHuge = uintptr_t{2} << 20;
  const auto begin = reinterpret_cast<uintptr_t>(fresh);
  const uintptr_t first = (begin + kHuge - 1) / kHuge * kHuge;
  const uintptr_t last = (begin + bytes) / kHuge * kHuge;
  if (last > first)
    ::madvise(static_cast<char*>(fresh) + (first - begin), last - first, MADV_HUGEPAGE);
#endif
}

}  // namespace posenc::platform
