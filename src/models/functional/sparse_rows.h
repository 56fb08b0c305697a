#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <cstdint>

#include "posenc/models/functional/sparse_vectors.h"

namespace posenc {

/// SparseVectors whose indices and values can be read. Errors name the public function `function`.
class SparseRows {
 public:
  SparseRows(const char* function, const SparseVectors& x)
      : crow_(indices(function, "crow_indices", x.crow_indices)),
        col_(indices(function, "col_indices", x.col_indices)),
        count_(x.size()) {
    TORCH_CHECK_TYPE(x.values.scalar_type() == at::kFloat, "[", function,
                     "] values must be float32. Got ", x.values.scalar_type());
    TORCH_CHECK_VALUE(x.values.is_cpu(), "[", function, "] values must be on the CPU. Got ",
                      x.values.device());
    TORCH_CHECK_VALUE(x.width >= 0, "[", function, "] width must not be negative. Got ", x.width);
    values_ = x.values.contiguous();
    TORCH_CHECK_VALUE(values_.sizes() == col_.sizes(), "[", function,
                      "] there must be an index for each value. Got ", col_.sizes(), " for ",
                      values_.sizes());
    begins_ = crow_.const_data_ptr<int64_t>();
    columns_ = col_.const_data_ptr<int64_t>();
    numbers_ = values_.const_data_ptr<float>();
    TORCH_CHECK_VALUE(count_ >= 0 && begin(0) == 0 && begin(count_) == entries(), "[", function,
                      "] crow_indices must go from 0 to the number of values, ", entries());
    for (int64_t row = 0; row < count_; ++row) check_row(function, row, x.width);
  }
  SparseRows(const SparseRows&) = delete;
  SparseRows& operator=(const SparseRows&) = delete;

  int64_t count() const { return count_; }
  int64_t entries() const { return values_.numel(); }
  int64_t begin(int64_t row) const { return begins_[row]; }
  int64_t end(int64_t row) const { return begins_[row + 1]; }
  int64_t column(int64_t i) const { return columns_[i]; }
  float value(int64_t i) const { return numbers_[i]; }

 private:
  static at::Tensor indices(const char* function, const char* name, const at::Tensor& given) {
    TORCH_CHECK_TYPE(given.scalar_type() == at::kLong, "[", function, "] ", name,
                     " must be int64. Got ", given.scalar_type());
    TORCH_CHECK_VALUE(given.dim() == 1 && given.is_cpu(), "[", function, "] ", name,
                      " must be a list on the CPU. Got ", given.sizes());
    return given.contiguous();
  }
  void check_row(const char* function, int64_t row, int64_t width) const {
    TORCH_CHECK_VALUE(begin(row) <= end(row) && end(row) <= entries(), "[", function,
                      "] crow_indices must ascend to the number of values, ", entries(), ". Got ",
                      end(row), " after ", begin(row));
    for (int64_t i = begin(row), before = -1; i < end(row); before = column(i++))
      TORCH_CHECK_VALUE(before < column(i) && column(i) < width, "[", function,
                        "] col_indices must ascend in each row, from 0 to below the width, ", width,
                        ". Got ", column(i), " after ", before, " in row ", row);
  }

  at::Tensor crow_, col_, values_;
  int64_t count_;
  const int64_t *begins_ = nullptr, *columns_ = nullptr;
  const float* numbers_ = nullptr;
};

}  // namespace posenc
