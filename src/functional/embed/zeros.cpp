#include "functional/embed/zeros.h"

#include <ATen/ops/zeros.h>
#include <c10/core/CPUAllocator.h>

#include <cstdlib>

#include "kernels/huge_pages.h"

namespace posenc::functional {
namespace {

constexpr size_t kAlignment = 64;

char* aligned(char* memory) {
  return memory + (kAlignment - reinterpret_cast<uintptr_t>(memory) % kAlignment) % kAlignment;
}

void release(void* memory) {
  c10::profiledCPUMemoryReporter().Delete(aligned(static_cast<char*>(memory)));
  std::free(memory);
}

// calloc knows memory that is fresh from the system, and leaves it alone. c10 is told of it as of
// its own, for memory profilers; a tensor in it can be resized.
c10::Storage zero_storage(size_t bytes) {
  char* const memory = static_cast<char*>(std::calloc(bytes + kAlignment, 1));
  if (memory == nullptr) return {};
  char* const first = aligned(memory);
  kernels::advise_huge_pages(first, bytes);
  c10::profiledCPUMemoryReporter().New(first, bytes);
  return {c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(first, memory, release, at::kCPU),
          c10::GetCPUAllocator(), /*resizable=*/true};
}

}  // namespace

at::Tensor cheap_zeros(int64_t rows, int64_t dim, at::ScalarType dtype) {
  const size_t bytes = static_cast<size_t>(rows * dim) * c10::elementSize(dtype);
  // Who has set an allocator wants it to be used.
  const bool own =
      kernels::worth_huge_pages(bytes) && c10::GetCPUAllocator() == c10::GetDefaultCPUAllocator();
  c10::Storage storage = own ? zero_storage(bytes) : c10::Storage();
  if (!storage) return at::zeros({rows, dim}, at::TensorOptions(dtype));  // or says what is missing
  const at::Tensor out = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(dtype));
  out.unsafeGetTensorImpl()->set_sizes_contiguous({rows, dim});
  return out;
}

}  // namespace posenc::functional
