#pragma once

#include "posenc/functional/attention_mask.h"

namespace posenc {

/// A mask in the form that scaled_dot_product_attention takes.
struct ScoreMask {
  at::Tensor bias;         ///< added to the scores, (B|1, H|1, L|1, S|1); undefined for none
  bool is_causal = false;  ///< query i may attend to keys 0 .. i; the bias is then undefined
};

/// What attention, decoders and frozen models need of a mask.
struct AttentionMaskAccess {
  /// The whole mask as one bias with the dtype and device of `like`.
  static ScoreMask resolve(const AttentionMask& mask, const AttentionShape& shape,
                           const at::Tensor& like);

  /// The part of the mask for `count` queries from `first` on, for a decoder that processes a few
  /// queries at a time. Throws c10::ValueError for queries outside the mask's tensors.
  static AttentionMask queries(const AttentionMask& mask, int64_t first, int64_t count);

  /// The part of a resolved() mask for the sequences `rows` of the batch.
  static AttentionMask sequences(const AttentionMask& mask, const at::Tensor& rows);

  /// The mask without the tensors that padding_keys() combines.
  static AttentionMask without_keys(const AttentionMask& mask);
};

}  // namespace posenc
