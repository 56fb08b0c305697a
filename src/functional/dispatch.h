#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

#include "kernels/embed.h"

// Checks shared by all fused operations. See torch_internals/shortcut.h for whether a tensor is
// plain and whether autograd records.
namespace posenc::functional {

/// Whether an operation on this many elements is faster with several threads, if there are any.
bool worth_threads(int64_t elements);

/// Finds the kernels' type for `dtype`; with `exact`, sums of half types are rounded only once.
/// Returns false if the kernels do not support `dtype`.
bool find_type(at::ScalarType dtype, bool exact, kernels::embed::Type& type);

/// Whether a half type is summed in float32 (Precision::Exact).
constexpr bool rounds_once(kernels::embed::Type type) {
  return type == kernels::embed::Type::BFloat16Exact || type == kernels::embed::Type::Float16Exact;
}

}  // namespace posenc::functional
