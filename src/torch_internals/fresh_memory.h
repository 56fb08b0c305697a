#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace posenc::torch_internals {

/// Memory for a result, uninitialised: from malloc for a small one, with the advice on huge pages
/// for a large one.
at::Tensor fresh_output(at::IntArrayRef sizes, at::ScalarType dtype);

/// Zeros (rows, dim). Large ones are pages that the system hands out as zeros: none is written
/// before its time, and huge pages are asked for.
at::Tensor cheap_zeros(int64_t rows, int64_t dim, at::ScalarType dtype);

}  // namespace posenc::torch_internals
