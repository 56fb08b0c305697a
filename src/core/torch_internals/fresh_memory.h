#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace posenc::torch_internals {

/// An uninitialised tensor for a result: a small one from malloc, a large one with a hint for huge
/// pages.
at::Tensor fresh_output(at::IntArrayRef sizes, at::ScalarType dtype);

/// Zeros of shape (rows, dim). Large ones are pages that the system zeroes on first use, so nothing
/// is written in advance, with a hint for huge pages.
at::Tensor lazy_zeros(int64_t rows, int64_t dim, at::ScalarType dtype);

}  // namespace posenc::torch_internals
