#include "inference/linear/int8_rows.h"

#include "kernels/dispatch.h"
#include "kernels/int8.h"

namespace posenc::inference {
namespace {

// The units and the zeros come first, each up to the end of a cache line.
int64_t floats_of_units(int64_t rows) { return (rows + 15) / 16 * 16; }

}  // namespace

Int8Rows::Int8Rows(float* buffer, int64_t rows, int64_t width)
    : bytes_(reinterpret_cast<uint8_t*>(buffer + 2 * floats_of_units(rows))),
      units_(buffer),
      minus_zeros_(reinterpret_cast<int32_t*>(buffer + floats_of_units(rows))),
      width_(width) {}

int64_t Int8Rows::floats(int64_t rows, int64_t width) {
  return 2 * floats_of_units(rows) + (rows * kernels::int8::row_bytes(width) + 3) / 4;
}

Int8Rows Int8Rows::from(int64_t row) const {
  Int8Rows rest = *this;
  if (bytes_ == nullptr) return rest;
  rest.bytes_ += row * kernels::int8::row_bytes(width_);
  rest.units_ += row;
  rest.minus_zeros_ += row;
  return rest;
}

void Int8Rows::convert(const float* x, int64_t stride, int64_t begin, int64_t end) const {
  kernels::chosen_inference().quantize_int8.quantize({.x = x,
                                                      .x_stride = stride,
                                                      .inner = width_,
                                                      .bytes = bytes_,
                                                      .units = units_,
                                                      .minus_zeros = minus_zeros_},
                                                     begin, end);
}

}  // namespace posenc::inference
