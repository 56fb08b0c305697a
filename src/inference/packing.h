#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "posenc/functional/attention_mask.h"

namespace posenc::inference {

/// Where the sequences of a batch (B, L) stand in a matrix of rows, without padding.
struct Packing {
  /// All rows, in their order.
  Packing(int64_t batch, int64_t length);
  /// Those rows (B, L) that `keep` says, bool on the CPU.
  explicit Packing(const at::Tensor& keep);

  /// The rows that the mask leaves, where it leaves out keys and nothing else; else all rows.
  static Packing of(const AttentionMask& mask, int64_t batch, int64_t length);

  /// What the mask that it was made of says beside that, for scores of this shape.
  ScoreMask residual_mask(const AttentionMask& mask, const AttentionShape& shape,
                          const at::Tensor& like) const;

  /// (B, L, ...) to (rows, ...).
  at::Tensor pack(const at::Tensor& x) const;
  /// (rows, D) to (B, L, D), with zeros for what was left out.
  at::Tensor unpack(const at::Tensor& rows) const;

  int64_t batch, length;
  int64_t rows;
  bool packed;                          ///< rows are left out
  bool covers_mask = false;             ///< the mask that it was made of says nothing else
  std::vector<int64_t> first, lengths;  ///< of each sequence
  std::vector<int64_t> places;          ///< b * L + l of each row, if packed
};

}  // namespace posenc::inference
