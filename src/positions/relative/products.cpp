#include "positions/relative/products.h"

#include "base/platform/memory.h"
#include "kernels/dispatch.h"

namespace posenc::relative {

void multiply(const float* x, int64_t stride, int64_t rows, const float* vectors, int64_t width,
              int64_t count, float* out) {
  kernels::inference::LinearRequest request = {};
  request.x = x;
  request.x_stride = stride;
  request.rows = rows;
  request.weight = vectors;
  request.inner = width;
  request.outer = count;
  request.out = out;
  request.out_stride = count;
  float* const memory =
      platform::scratch(platform::Scratch::Panel, kernels::inference::scratch_floats(width));
  kernels::chosen().linear_many.run(request, 0, count, memory);
}

}  // namespace posenc::relative
