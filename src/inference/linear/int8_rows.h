#pragma once

#include <cstdint>

namespace posenc::inference {

/// Rows in 8 bits, as products with weights in 8 bits read them (kernels/int8.h), with a scale for
/// each `scale_block` elements, or one a row if that is 0.
class Int8Rows {
 public:
  Int8Rows() = default;  ///< none
  /// `rows` rows in a buffer of floats().
  Int8Rows(float* buffer, int64_t rows, int64_t width, int64_t scale_block);
  static int64_t floats(int64_t rows, int64_t width, int64_t scale_block);

  explicit operator bool() const { return bytes_ != nullptr; }
  /// The rows from `row` on.
  Int8Rows from(int64_t row) const;
  /// Converts rows [begin, end) of x (rows, width), which are `stride` apart, to the same rows.
  void convert(const float* x, int64_t stride, int64_t begin, int64_t end) const;

  const uint8_t* bytes() const { return bytes_; }
  const float* units() const { return units_; }
  const int32_t* minus_zeros() const { return minus_zeros_; }

 private:
  uint8_t* bytes_ = nullptr;
  float* units_ = nullptr;
  int32_t* minus_zeros_ = nullptr;
  int64_t width_ = 0, scale_block_ = 0;
};

}  // namespace posenc::inference
