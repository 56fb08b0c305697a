#include "functional/dispatch.h"

#include <ATen/Parallel.h>

namespace posenc::functional {

namespace kernel = kernels::embed;

bool worth_threads(int64_t elements) {
  constexpr int64_t kLeast = 65536;  // measured: docs/developers/benchmarks.md
  return elements >= kLeast && at::get_num_threads() > 1 && !at::in_parallel_region();
}

bool find_type(at::ScalarType dtype, bool exact, kernel::Type& type) {
  switch (dtype) {
    case at::kFloat: type = kernel::Type::Float32; return true;
    case at::kDouble: type = kernel::Type::Float64; return true;
    case at::kBFloat16:
      type = exact ? kernel::Type::BFloat16Exact : kernel::Type::BFloat16;
      return true;
    case at::kHalf: type = exact ? kernel::Type::Float16Exact : kernel::Type::Float16; return true;
    default: return false;
  }
}

}  // namespace posenc::functional
