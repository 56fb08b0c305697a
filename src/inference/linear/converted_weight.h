#pragma once

#include <utility>
#include <variant>

#include "inference/linear/bfloat16_weight.h"
#include "inference/linear/int8_weight.h"
#include "inference/linear/packed_bfloat16_weight.h"

namespace posenc::inference {

/// A weight in a dtype of fewer bits than float32.
using ConvertedWeight = std::variant<Int8Weight, BFloat16Weight, PackedBFloat16Weight>;

/// The size of its memory.
inline int64_t bytes(const ConvertedWeight& weight) {
  return std::visit([](const auto& one) { return one.bytes(); }, weight);
}

/// A table of tokens in such a dtype.
class ConvertedTable {
 public:
  explicit ConvertedTable(ConvertedWeight weight) : weight_(std::move(weight)) {}

  /// The float32 rows (N, width()) of N ids, which must be in range.
  at::Tensor rows(const at::Tensor& ids) const {
    return std::visit([&](const auto& one) { return one.rows(ids); }, weight_);
  }
  int64_t width() const {
    return std::visit([](const auto& one) { return one.in(); }, weight_);
  }
  int64_t vocab_size() const {
    return std::visit([](const auto& one) { return one.out(); }, weight_);
  }

 private:
  ConvertedWeight weight_;
};

}  // namespace posenc::inference
