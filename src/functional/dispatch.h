#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

#include "kernels/embed.h"

// What every fused operation asks first. Whether its tensors are plain ones, and whether autograd
// records: torch_internals/shortcut.h.
namespace posenc::functional {

/// Whether this many elements are faster with this thread's other threads, if it has any.
bool worth_threads(int64_t elements);

/// The kernels' type for `dtype`, whose sums are rounded once if `exact`; false where there is
/// none.
bool find_type(at::ScalarType dtype, bool exact, kernels::embed::Type& type);

/// Whether half types are summed in float32: Precision::Exact.
constexpr bool rounds_once(kernels::embed::Type type) {
  return type == kernels::embed::Type::BFloat16Exact || type == kernels::embed::Type::Float16Exact;
}

}  // namespace posenc::functional
