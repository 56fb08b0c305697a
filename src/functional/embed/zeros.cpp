#include "functional/embed/zeros.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <cstdlib>

#include "kernels/huge_pages.h"

namespace posenc::functional {

at::Tensor cheap_zeros(int64_t rows, int64_t dim, at::ScalarType dtype) {
  constexpr size_t kAlignment = 64;
  const at::TensorOptions options(dtype);
  const size_t bytes = static_cast<size_t>(rows * dim) * c10::elementSize(dtype);
  if (!kernels::worth_huge_pages(bytes)) return at::zeros({rows, dim}, options);
  // calloc knows memory that is fresh from the system, and leaves it alone.
  char* const memory = static_cast<char*>(std::calloc(bytes + kAlignment, 1));
  if (memory == nullptr) return at::zeros({rows, dim}, options);  // which says what is missing
  char* const first =
      memory + (kAlignment - reinterpret_cast<uintptr_t>(memory) % kAlignment) % kAlignment;
  kernels::advise_huge_pages(first, bytes);
  return at::for_blob(first, {rows, dim}).context(memory, std::free).options(options).make_tensor();
}

}  // namespace posenc::functional
