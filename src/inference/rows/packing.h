#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "transformer/functional/attention_mask_internals.h"

namespace posenc::inference {

/// Neighbouring sequences [begin, end) of a batch, and their rows.
struct SequenceRange {
  int64_t begin, end;
  int64_t first_row, rows;
};

/// Maps the sequences of a batch (B, L) to a matrix of the rows that are computed: all, or those
/// that are no padding.
struct Packing {
  /// Keeps all rows, in order.
  Packing(int64_t batch, int64_t length);
  /// Keeps the rows (B, L) for which `keep`, bool on the CPU, is true.
  explicit Packing(const at::Tensor& keep);

  /// Sequences of these lengths, whose rows are computed, and of which `past` tokens are known
  /// already: those of a causal stack.
  Packing(const std::vector<int64_t>& lengths, std::vector<int64_t> past);

  /// Drops the rows of the mask's padding_keys(), but for those of `computed`, bool (B|1, L|1),
  /// which are queries and no keys: is_padding() tells which they are.
  static Packing of(const AttentionMask& mask, int64_t batch, int64_t length,
                    const at::Tensor& computed = {});
  /// Keeps all rows in this way.
  static Packing whole(const AttentionMask& mask, int64_t batch, int64_t length);

  /// The part of `mask`, the mask that this packing was made from, that the packing does not cover,
  /// for scores whose queries and keys both are the kept rows of each sequence, in order.
  /// The slopes are in ScoreMask::by_distance, where a distance is that of positions in the whole
  /// sequence; with `counts_tokens`, where other distances of the model count rows, they are in the
  /// bias if that is another number.
  ScoreMask mask_of_rows(const AttentionMask& mask, int64_t heads, const at::Tensor& like,
                         bool counts_tokens = false) const;
  /// The same for scores of whole sequences of queries with the kept rows as keys; the slopes are
  /// in ScoreMask::by_distance.
  ScoreMask mask_of_keys(const AttentionMask& mask, int64_t heads, int64_t queries,
                         const at::Tensor& like) const;

  /// (B, L, ...) to (rows, ...).
  at::Tensor pack(const at::Tensor& x) const;
  /// (rows, D) to (B, L, D), with zeros for dropped rows.
  at::Tensor unpack(const at::Tensor& rows) const;

  /// Whether a row is one of padding that is not dropped.
  bool is_padding(int64_t row) const {
    return tokens.defined() &&
           !tokens.const_data_ptr<bool>()[packed ? positions[static_cast<std::size_t>(row)] : row];
  }
  /// The rows of those (B, L) for which `kept`, bool or integers, is 0; none if it is undefined.
  std::vector<int64_t> rows_without(const at::Tensor& kept) const;

  /// Whether the rows of each sequence are neighbours in it: only its ends are dropped.
  bool has_neighbours() const;
  /// A bias (B|1, H|1, L|1, L|1) of whole sequences for the kept rows of each, in order.
  at::Tensor kept_pairs(const at::Tensor& bias) const { return kept(kept(bias, 2), 3); }
  /// The positions (B, L) of the kept rows of each sequence in it, in order; undefined where each
  /// keeps its first rows.
  at::Tensor kept_positions() const;

  /// The number of tokens before each row in its sequence, int64 (rows), with those of `past`.
  at::Tensor token_positions() const;

  /// Parts of the batch of about that many rows, or of one sequence that has more.
  std::vector<SequenceRange> parts(int64_t rows_each) const;
  /// The whole batch.
  SequenceRange all() const { return {0, batch, 0, rows}; }

  int64_t batch, length;
  int64_t rows;
  bool packed;                          ///< some rows are dropped
  bool covers_mask = false;             ///< the mask's padding is what is dropped, if there is any
  std::vector<int64_t> first, lengths;  ///< per sequence: first row, number of rows
  /// Per sequence: how many of its rows are no padding; empty if all are.
  std::vector<int64_t> token_counts;
  std::vector<int64_t> positions;  ///< b * L + l of each row, if packed
  /// Per sequence of a causal stack: how many of its tokens come before its rows. Each sequence is
  /// computed as if alone, also where its length matters. Empty in other stacks.
  std::vector<int64_t> past;
  at::Tensor
      tokens;  ///< bool (B, L) on the CPU: false for padding whose rows are kept, or undefined

 private:
  AttentionMask residual_mask(const AttentionMask& mask) const;
  bool keeps_beginnings() const;
  at::Tensor kept(const at::Tensor& bias, int64_t axis) const;
};

}  // namespace posenc::inference
