#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "posenc/functional/attention_mask.h"

namespace posenc::inference {

/// Where the sequences of a batch (B, L) stand in a matrix of rows without padding: by length, so
/// that equal ones are neighbours.
struct Packing {
  /// Sequences of one length, one behind the other.
  struct Group {
    int64_t first_row, sequences, length;
  };

  /// All rows, in their order.
  Packing(int64_t batch, int64_t length);
  /// Those rows (B, L) that `keep` says, bool on the CPU.
  explicit Packing(const at::Tensor& keep);

  /// The rows that the mask leaves, where it leaves out keys and nothing else; else all rows.
  static Packing of(const AttentionMask& mask, int64_t batch, int64_t length);

  /// (B, L, ...) to (rows, ...).
  at::Tensor pack(const at::Tensor& x) const;
  /// (rows, D) to (B, L, D), with zeros for what was left out.
  at::Tensor unpack(const at::Tensor& rows) const;

  int64_t batch, length;
  int64_t rows;
  bool packed;            ///< rows are left out, and may stand in another order
  bool says_all = false;  ///< the mask that it was made of says nothing else
  std::vector<Group> groups;
  std::vector<int64_t> first, lengths;  ///< of each sequence, in the batch's order
  std::vector<int64_t> places;          ///< b * L + l of each row, if packed
};

}  // namespace posenc::inference
