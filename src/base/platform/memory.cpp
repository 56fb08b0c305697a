#include "base/platform/memory.h"

#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <memory>
#include <new>

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

namespace {

constexpr std::align_val_t kLine{64};

struct FreeLine {
  void operator()(float* memory) const { ::operator delete[](memory, kLine); }
};
struct Buffer {
  std::unique_ptr<float[], FreeLine> memory;
  int64_t floats = 0;
};

}  // namespace

float* scratch(Scratch kind, int64_t floats) {
  static thread_local std::array<Buffer, kScratches> buffers;
  Buffer& buffer = buffers[static_cast<size_t>(kind)];
  if (buffer.floats < floats) {
    buffer.floats = 0;  // the allocation may throw
    buffer.memory.reset();
    buffer.memory.reset(
        static_cast<float*>(::operator new[](sizeof(float) * static_cast<size_t>(floats), kLine)));
    buffer.floats = floats;
  }
  return buffer.memory.get();
}

}  // namespace posenc::platform
