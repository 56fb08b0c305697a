#pragma once

#include <cstdint>

#include "inference/linear/int8_rows.h"
#include "kernels/inference.h"

namespace posenc::inference {

/// How products read their rows.
struct RowFormat {
  enum Type { Float32, Int8, BFloat16 };
  constexpr RowFormat(Type type, int64_t scale_block = 0) : type(type), scale_block(scale_block) {}
  bool operator==(const RowFormat&) const = default;

  Type type;
  int64_t scale_block;  ///< of Int8 (kernels/int8.h)
};
/// That of two products of a model, which reads at most one beside Float32.
constexpr RowFormat either(RowFormat a, RowFormat b) { return a == RowFormat::Float32 ? b : a; }

/// Rows in another format than float32: converted once for all products that read them so, and
/// where they are written, while they are in the cache.
class ConvertedRows {
 public:
  ConvertedRows() = default;  ///< none
  /// `rows` rows in a buffer of floats(). Float32: none.
  ConvertedRows(RowFormat format, float* buffer, int64_t rows, int64_t width);
  static int64_t floats(RowFormat format, int64_t rows, int64_t width);

  explicit operator bool() const { return format_ != RowFormat::Float32; }
  RowFormat format() const { return format_; }
  /// The rows from `row` on.
  ConvertedRows from(int64_t row) const;
  /// Converts rows [begin, end) of x (rows, width), which are `stride` apart, to the same rows.
  void convert(const float* x, int64_t stride, int64_t begin, int64_t end) const;
  /// Converts all `rows` rows; threads share the work.
  void convert(const float* x, int64_t stride, int64_t rows) const;

  const Int8Rows& int8() const { return int8_; }
  /// Rows of kernels::bfloat16::row_elements(width) numbers.
  const kernels::inference::BFloat16* bfloat16() const { return bfloat16_; }

 private:
  RowFormat format_ = RowFormat::Float32;
  int64_t width_ = 0;
  Int8Rows int8_;
  kernels::inference::BFloat16* bfloat16_ = nullptr;
};

}  // namespace posenc::inference
