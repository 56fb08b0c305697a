#include "inference/linear/converted_rows.h"

#include "inference/linear/linear.h"
#include "kernels/dispatch.h"

namespace posenc::inference {
namespace {

constexpr int64_t kGrainOfRows = 1 << 15;  // floats: least work per thread

}  // namespace

ConvertedRows::ConvertedRows(RowFormat format, float* buffer, int64_t rows, int64_t width)
    : format_(format), width_(width) {
  if (format.type == RowFormat::Int8) int8_ = Int8Rows(buffer, rows, width, format.scale_block);
  if (format.type == RowFormat::BFloat16)
    bfloat16_ = reinterpret_cast<kernels::inference::BFloat16*>(buffer);
}

int64_t ConvertedRows::floats(RowFormat format, int64_t rows, int64_t width) {
  switch (format.type) {
    case RowFormat::Float32: return 0;
    case RowFormat::Int8: return Int8Rows::floats(rows, width, format.scale_block);
    case RowFormat::BFloat16: break;
  }
  return rows * kernels::bfloat16::row_elements(width) / 2;
}

ConvertedRows ConvertedRows::from(int64_t row) const {
  ConvertedRows rest = *this;
  rest.int8_ = int8_.from(row);
  if (bfloat16_ != nullptr) rest.bfloat16_ += row * kernels::bfloat16::row_elements(width_);
  return rest;
}

void ConvertedRows::convert(const float* x, int64_t stride, int64_t begin, int64_t end) const {
  if (int8_) return int8_.convert(x, stride, begin, end);
  kernels::chosen_inference().round_bfloat16.round(
      {.x = x, .x_stride = stride, .inner = width_, .out = bfloat16_}, begin, end);
}

void ConvertedRows::convert(const float* x, int64_t stride, int64_t rows) const {
  share_work(rows, width_, kGrainOfRows,
             [&](int64_t begin, int64_t end) { convert(x, stride, begin, end); });
}

}  // namespace posenc::inference
