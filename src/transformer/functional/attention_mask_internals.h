#pragma once

#include <string>

#include "posenc/positions/relative/scores.h"
#include "posenc/transformer/functional/attention_mask.h"

namespace posenc {

/// A mask in the form that scaled_dot_product_attention takes.
struct ScoreMask {
  at::Tensor bias;         ///< added to the scores, (B|1, H|1, L|1, S|1); undefined for none
  bool is_causal = false;  ///< query i may attend to keys 0 .. i; the bias is then undefined
  /// What slopes() adds, where it is not in the bias: AttentionMaskAccess::by_distance(). Undefined
  /// where nothing is added, or where the bias has it.
  at::Tensor by_distance = {};
  /// The same as a term, which has the distances of keys from queries in the other order.
  relative::Distances distances(int64_t queries, int64_t keys) const;
  /// Where the boolean parts of the mask allow a score, (B|1, H|1, L|1, S|1); undefined where they
  /// allow all. The bias is -inf elsewhere, whatever is added to it: a NaN too.
  at::Tensor allowed = {};
};

/// What attention, decoders and frozen models need of a mask.
struct AttentionMaskAccess {
  /// The whole mask as one bias with the dtype and device of `like`.
  static ScoreMask resolve(const AttentionMask& mask, const AttentionShape& shape,
                           const at::Tensor& like);

  /// The part of the mask for `count` queries from `first` on, for a decoder that processes a few
  /// queries at a time. Throws c10::ValueError for queries outside the mask's tensors.
  static AttentionMask queries(const AttentionMask& mask, int64_t first, int64_t count);

  /// The mask of all keys but the first `count`, which are not there: the queries come after as
  /// many fewer.
  static AttentionMask without_first_keys(const AttentionMask& mask, int64_t count);

  /// The part of a resolved() mask for the sequences `rows` of the batch.
  static AttentionMask sequences(const AttentionMask& mask, const at::Tensor& rows);

  /// The mask without the tensors that padding_keys() combines.
  static AttentionMask without_keys(const AttentionMask& mask);
  /// The makers of the parts that this leaves: `causal() & slopes()`.
  static std::string other_makers(const AttentionMask& mask);

  /// The mask without these, told that padding_keys() are `keys` nevertheless: what else it
  /// consists of may hide padding, or some of it.
  static AttentionMask with_padding(const AttentionMask& mask, const at::Tensor& keys);

  /// The mask with tensors of its own, which nobody else writes to.
  static AttentionMask copied(const AttentionMask& mask);

  /// The mask without its slopes().
  static AttentionMask without_slopes(const AttentionMask& mask);
  /// The slopes of the mask for each distance and not for each pair, which is all that a kernel
  /// needs: (H, L + S - 1 + room), of which entry S - 1 + d is what is added for query i and key j
  /// with d = i - j, and `room` entries are zeros. Undefined without slopes.
  static at::Tensor by_distance(const AttentionMask& mask, const AttentionShape& shape,
                                const at::Tensor& like, int64_t room);
};

}  // namespace posenc
