#include "platform/scratch.h"

#include <array>
#include <memory>
#include <new>

namespace posenc::platform {
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
