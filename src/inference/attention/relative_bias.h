#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "inference/rows/packing.h"
#include "posenc/positions/nn/relative_position_bias.h"
#include "posenc/positions/relative/alibi.h"
#include "transformer/functional/attention_mask_internals.h"

namespace posenc::inference {

/// The table (rows, H) of a relative position bias, shared with its module. A score's bias depends
/// on the distance of its tokens only, so that a call needs one row for each head, and never the
/// bias of all pairs.
struct RelativeBias {
  at::Tensor table;
  relative::Index index;
  bool has_nan_beside_masks;  ///< NaN, or inf, in the table, which is frozen

  /// (H, 2 length - 1 and room for a panel of queries): entry length - 1 + d is that of a query d
  /// tokens after its key, so that neighbouring queries of a key have neighbouring entries.
  at::Tensor by_distance(int64_t length) const;
  /// (H, length): entry length - 1 - d is that of a query d tokens after its key, so that the last
  /// i + 1 entries are those of query i for all keys up to itself.
  at::Tensor before(int64_t length) const;

 private:
  at::Tensor gather(const at::Tensor& distances, int64_t room) const;
};

/// ALiBi's slopes (H) of a stack, which a call needs by distance too.
struct AlibiSlopes {
  at::Tensor slopes;
  bool counts_tokens;
  /// Whether biases are of_keys() and not of distances.
  std::optional<relative::Alibi> of_positions = std::nullopt;

  /// As RelativeBias has them.
  at::Tensor by_distance(int64_t length) const;
  at::Tensor before(int64_t length) const;
  /// The biases (B, H, 1, K) of keys at these positions (B, K).
  at::Tensor of_keys(const at::Tensor& positions) const;
};

/// Those of a stack's options, if there are any.
std::optional<AlibiSlopes> alibi_of(const std::optional<relative::Alibi>& alibi, int64_t heads);

/// A mask that makes the distances of a stack that counts tokens those of its tokens, where padding
/// is among the rows: it takes what the stack adds by rows away. The same mask for other stacks.
AttentionMask with_token_distances(const AttentionMask& mask,
                                   const std::optional<AlibiSlopes>& alibi);

/// The whole mask, with its slopes by distance.
ScoreMask mask_by_distance(const AttentionMask& mask, const AttentionShape& shape,
                           const at::Tensor& like);

/// What is added to the scores of a call by distance: of relative biases, of ALiBi and of a mask.
class DistanceRows {
 public:
  DistanceRows(const std::vector<RelativeBias>& biases, const std::optional<AlibiSlopes>& alibi,
               const ScoreMask& mask, int64_t length);

  /// The mask of a layer with one of these biases, or none: `own`, with the sum (H, .) of what is
  /// added by distance. Where that has a NaN or inf beside scores that are not allowed, it is in
  /// the bias of all pairs instead, which is -inf there.
  ScoreMask of(const std::optional<std::size_t>& bias, const ScoreMask& own, const Packing& packing,
               bool counts_tokens) const;

 private:
  std::vector<at::Tensor> rows_;
  std::vector<bool> have_nan_beside_masks_;  // of these rows
  at::Tensor others_;                        // of layers without a relative bias
  bool others_have_nan_beside_masks_;
};

/// The number of `bias` among those of the layers so far, where it is added unless one is the same.
std::size_t add_bias(std::vector<RelativeBias>& all, const RelativePositionBiasImpl& bias);

}  // namespace posenc::inference
