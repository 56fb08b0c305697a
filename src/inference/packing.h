#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "posenc/functional/attention_mask.h"

namespace posenc::inference {

/// Maps the sequences of a batch (B, L) to a matrix of rows without padding.
struct Packing {
  /// Keeps all rows, in order.
  Packing(int64_t batch, int64_t length);
  /// Keeps the rows (B, L) for which `keep`, bool on the CPU, is true.
  explicit Packing(const at::Tensor& keep);

  /// Drops the rows that the mask excludes, if it is a plain key mask; otherwise keeps all rows.
  static Packing of(const AttentionMask& mask, int64_t batch, int64_t length);

  /// The part of `mask`, the mask that this packing was made from, that the packing does not cover,
  /// for scores of this shape.
  ScoreMask residual_mask(const AttentionMask& mask, const AttentionShape& shape,
                          const at::Tensor& like) const;

  /// (B, L, ...) to (rows, ...).
  at::Tensor pack(const at::Tensor& x) const;
  /// (rows, D) to (B, L, D), with zeros for dropped rows.
  at::Tensor unpack(const at::Tensor& rows) const;

  int64_t batch, length;
  int64_t rows;
  bool packed;                          ///< some rows are dropped
  bool covers_mask = false;             ///< the mask excludes nothing else
  std::vector<int64_t> first, lengths;  ///< per sequence: first row, number of rows
  std::vector<int64_t> places;          ///< b * L + l of each row, if packed
};

}  // namespace posenc::inference
