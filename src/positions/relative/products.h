#pragma once

#include <cstdint>

namespace posenc::relative {

/// out (rows, count) = x (rows, width) times `count` vectors (count, width); the rows of x are
/// `stride` apart.
void multiply(const float* x, int64_t stride, int64_t rows, const float* vectors, int64_t width,
              int64_t count, float* out);

}  // namespace posenc::relative
