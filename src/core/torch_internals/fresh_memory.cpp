#include "core/torch_internals/fresh_memory.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/safe_numerics.h>

#include <cstdlib>
#include <utility>

#include "base/platform/memory.h"

namespace posenc::torch_internals {
namespace {

constexpr size_t kAlignment = 64;
// In elements. Beyond this size, allocating takes next to no time compared with writing.
constexpr uint64_t kSmall = uint64_t{1} << 16;

char* aligned(char* memory) {
  return memory + (kAlignment - reinterpret_cast<uintptr_t>(memory) % kAlignment) % kAlignment;
}

void release(void* memory) {
  c10::profiledCPUMemoryReporter().Delete(aligned(static_cast<char*>(memory)));
  std::free(memory);
}

// Whether c10 itself would get the memory from the system. If the user has set an allocator, that
// one has to be used.
bool may_allocate() { return c10::GetCPUAllocator() == c10::GetDefaultCPUAllocator(); }

// A storage in `memory`, which has kAlignment bytes more than `bytes`, or may be null. It is
// reported to c10 like c10's own memory, for memory profilers, and a tensor in it can be resized.
c10::Storage storage_of(void* memory, size_t bytes) {
  if (memory == nullptr) return {};
  char* const first = aligned(static_cast<char*>(memory));
  c10::profiledCPUMemoryReporter().New(first, bytes);
  return {c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(first, memory, release, at::kCPU),
          c10::GetCPUAllocator(), /*resizable=*/true};
}

at::Tensor tensor_in(c10::Storage&& storage, at::IntArrayRef sizes, at::ScalarType dtype) {
  at::Tensor out = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
      c10::scalarTypeToTypeMeta(dtype));
  out.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return out;
}

}  // namespace

at::Tensor fresh_output(at::IntArrayRef sizes, at::ScalarType dtype) {
  uint64_t elements = 0;
  // c10 aligns by posix_memalign(), which takes twice as long as malloc() and free(): a tenth of
  // the time of embedding a single token. Large blocks stay with c10, which can use huge pages if
  // configured.
  if (!c10::safe_multiplies_u64(sizes, &elements) && elements > 0 && elements <= kSmall &&
      may_allocate()) {
    const size_t bytes = elements * c10::elementSize(dtype);
    if (c10::Storage storage = storage_of(std::malloc(bytes + kAlignment), bytes))
      return tensor_in(std::move(storage), sizes, dtype);
  }
  at::Tensor out(at::detail::empty_cpu(sizes, dtype));  // or throws
  if (const size_t all = out.nbytes(); platform::benefits_from_huge_pages(all))
    platform::advise_huge_pages(out.data_ptr(), all);
  return out;
}

at::Tensor lazy_zeros(int64_t rows, int64_t dim, at::ScalarType dtype) {
  const size_t bytes = static_cast<size_t>(rows * dim) * c10::elementSize(dtype);
  c10::Storage storage;
  if (platform::benefits_from_huge_pages(bytes) && may_allocate()) {
    // calloc does not clear memory that is fresh from the system.
    storage = storage_of(std::calloc(bytes + kAlignment, 1), bytes);
    if (storage) platform::advise_huge_pages(storage.mutable_data(), bytes);
  }
  if (!storage) return at::zeros({rows, dim}, at::TensorOptions(dtype));  // or throws
  return tensor_in(std::move(storage), {rows, dim}, dtype);
}

}  // namespace posenc::torch_internals
