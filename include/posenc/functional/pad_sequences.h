#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>
#include <vector>

namespace posenc::functional {

/// Sequences of unequal length as one rectangle.
struct PaddedBatch {
  at::Tensor ids;      ///< (B, L), the sequences' type; pad_id after each end
  at::Tensor mask;     ///< (B, L), bool: true for a token, false for padding
  at::Tensor lengths;  ///< (B), int64, in tokens
};

struct PadSequencesOptions {
  /// The id of the padding. A vocabulary that starts at 1, as in the second notebook, needs an
  /// embedding table of TOKEN_CNT + 1 rows.
  TORCH_ARG(int64_t, pad_id) = 0;
  /// L; 0 takes the longest sequence.
  TORCH_ARG(int64_t, max_len) = 0;
};

/// Pads 1-D integer sequences on the right to (B, L).
///
/// Throws c10::ValueError for an empty list, a sequence of another rank, one longer than max_len, a
/// negative max_len, or different devices; c10::TypeError for real-valued or mixed types.
PaddedBatch pad_sequences(const std::vector<at::Tensor>& sequences,
                          const PadSequencesOptions& options = {});

/// The mask alone: lengths (B), in tokens  ->  (B, max_len) bool, true for a token.
/// max_len 0 takes the largest length, for which the lengths are read back from their device.
at::Tensor length_mask(const at::Tensor& lengths, int64_t max_len = 0);

}  // namespace posenc::functional
