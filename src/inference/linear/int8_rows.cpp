#include "inference/linear/int8_rows.h"

#include "kernels/dispatch.h"
#include "kernels/int8.h"

namespace posenc::inference {
namespace {

// The units and the zeros come first, each up to the end of a cache line.
int64_t floats_of_units(int64_t rows, int64_t width, int64_t scale_block) {
  return (rows * kernels::int8::scales(width, scale_block) + 15) / 16 * 16;
}

}  // namespace

Int8Rows::Int8Rows(float* buffer, int64_t rows, int64_t width, int64_t scale_block)
    : units_(buffer), width_(width), scale_block_(scale_block) {
  const int64_t units = floats_of_units(rows, width, scale_block);
  minus_zeros_ = reinterpret_cast<int32_t*>(buffer + units);
  bytes_ = reinterpret_cast<uint8_t*>(buffer + 2 * units);
}

int64_t Int8Rows::floats(int64_t rows, int64_t width, int64_t scale_block) {
  return 2 * floats_of_units(rows, width, scale_block) +
         (rows * kernels::int8::row_bytes(width) + 3) / 4;
}

Int8Rows Int8Rows::from(int64_t row) const {
  Int8Rows rest = *this;
  if (bytes_ == nullptr) return rest;
  rest.bytes_ += row * kernels::int8::row_bytes(width_);
  const int64_t scales = kernels::int8::scales(width_, scale_block_);
  rest.units_ += row * scales;
  rest.minus_zeros_ += row * scales;
  return rest;
}

void Int8Rows::convert(const float* x, int64_t stride, int64_t begin, int64_t end) const {
  kernels::chosen_inference().quantize_int8.quantize({.x = x,
                                                      .x_stride = stride,
                                                      .inner = width_,
                                                      .scale_block = scale_block_,
                                                      .bytes = bytes_,
                                                      .units = units_,
                                                      .minus_zeros = minus_zeros_},
                                                     begin, end);
}

}  // namespace posenc::inference
