#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>
#include <vector>

#include "posenc/export.h"

namespace posenc {
namespace functional POSENC_EXPORT {

/// Sequences of different lengths in one tensor.
struct PaddedBatch {
  at::Tensor ids;      ///< (B, L), in the sequences' dtype, padded on the right with pad_id
  at::Tensor mask;     ///< (B, L), bool: true for a token, false for padding
  at::Tensor lengths;  ///< (B), int64, in tokens
};

/// Options of pad_sequences().
struct PadSequencesOptions {
  /// The padding id. If the vocabulary's ids start at 1, the embedding table needs one row more
  /// than there are tokens.
  TORCH_ARG(int64_t, pad_id) = 0;
  /// The padded length L; 0: that of the longest sequence.
  TORCH_ARG(int64_t, max_len) = 0;
};

/// Pads 1-D integer sequences on the right to a batch (B, L).
///
/// ```cpp
/// std::vector<torch::Tensor> sequences = {torch::tensor({5, 6, 7}), torch::tensor({8})};
/// auto batch = posenc::functional::pad_sequences(sequences);
/// auto mask = posenc::AttentionMask::key_padding(batch.mask);
/// ```
///
/// Errors: c10::ValueError for an empty list, a sequence of the wrong rank or longer than max_len,
/// a negative max_len, and sequences on different devices; c10::TypeError for floating-point and
/// mixed types.
PaddedBatch pad_sequences(const std::vector<at::Tensor>& sequences,
                          const PadSequencesOptions& options = {});

/// The mask only: lengths (B), in tokens  ->  (B, max_len) bool, true for a token.
///
/// With max_len 0 the largest length is used, which means reading `lengths` back from the device.
at::Tensor length_mask(const at::Tensor& lengths, int64_t max_len = 0);

}  // namespace functional
}  // namespace posenc
