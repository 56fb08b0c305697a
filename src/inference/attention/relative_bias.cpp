#include "inference/attention/relative_bias.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "kernels/inference.h"
#include "posenc/positions/relative/index.h"
#include "positions/relative/weights.h"
#include "transformer/layers/layer_parts.h"

namespace posenc::inference {
namespace {

// Whether -inf plus one of these is NaN: of NaN and inf.
bool has_nan_beside_masks(const at::Tensor& x) {
  return x.lt(std::numeric_limits<double>::infinity()).logical_not().any().item<bool>();
}

}  // namespace

at::Tensor RelativeBias::gather(const at::Tensor& distances, int64_t room) const {
  const int64_t count = distances.size(0), heads = table.size(1);
  const at::Tensor rows = relative_index(distances, index);
  const at::Tensor out = at::zeros({heads, count + room}, at::kFloat);
  const at::Tensor from = table.contiguous();
  const auto* const row = rows.const_data_ptr<int64_t>();
  const auto* const entries = from.const_data_ptr<float>();
  auto* const to = out.data_ptr<float>();
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < count; ++i) to[h * (count + room) + i] = entries[row[i] * heads + h];
  return out;
}

at::Tensor RelativeBias::by_distance(int64_t length) const {
  // A distance of relative_index() is that of the key from the query.
  const at::Tensor distances = at::arange(1 - length, std::max<int64_t>(length, 1), at::kLong);
  return gather(-distances, kernels::inference::kPanelRows);
}

at::Tensor RelativeBias::before(int64_t length) const {
  return gather(at::arange(1 - length, 1, at::kLong), 0);
}

at::Tensor AlibiSlopes::by_distance(int64_t length) const {
  const AttentionShape shape = {1, slopes.size(0), length, length};
  return AttentionMaskAccess::by_distance(AttentionMask::slopes(slopes), shape, slopes,
                                          kernels::inference::kPanelRows);
}

at::Tensor AlibiSlopes::before(int64_t length) const {
  return slopes.unsqueeze(1) * at::arange(1 - length, 1, at::kLong);
}

at::Tensor AlibiSlopes::of_keys(const at::Tensor& positions) const {
  return alibi_bias_of_keys(*of_positions, slopes.size(0), positions);
}

std::optional<AlibiSlopes> alibi_of(const std::optional<relative::Alibi>& alibi, int64_t heads) {
  if (!alibi) return std::nullopt;
  return AlibiSlopes{alibi_slopes(heads, *alibi), alibi->counts_tokens,
                     alibi->bfloat16 ? alibi : std::nullopt};
}

AttentionMask with_token_distances(const AttentionMask& mask,
                                   const std::optional<AlibiSlopes>& alibi) {
  const bool counts = alibi && alibi->counts_tokens && !alibi->of_positions;
  const at::Tensor tokens = counts ? mask.padding_keys() : at::Tensor();
  if (!tokens.defined()) return mask;
  return mask & AttentionMask::additive(alibi_bias_of_tokens(alibi->slopes, tokens)) &
         AttentionMask::slopes(-alibi->slopes);
}

ScoreMask mask_by_distance(const AttentionMask& mask, const AttentionShape& shape,
                           const at::Tensor& like) {
  ScoreMask all =
      AttentionMaskAccess::resolve(AttentionMaskAccess::without_slopes(mask), shape, like);
  all.by_distance =
      AttentionMaskAccess::by_distance(mask, shape, like, kernels::inference::kPanelRows);
  return all;
}

DistanceRows::DistanceRows(const std::vector<RelativeBias>& biases,
                           const std::optional<AlibiSlopes>& alibi, const ScoreMask& mask,
                           int64_t length)
    : others_(mask.by_distance),
      others_have_nan_beside_masks_(others_.defined() && has_nan_beside_masks(others_)) {
  if (alibi && !alibi->of_positions) {
    const at::Tensor own = alibi->by_distance(length);
    others_ = others_.defined() ? own + others_ : own;
  }
  for (const RelativeBias& bias : biases) {
    rows_.push_back(bias.by_distance(length));
    if (others_.defined()) rows_.back().add_(others_);
    have_nan_beside_masks_.push_back(bias.has_nan_beside_masks || others_have_nan_beside_masks_);
  }
}

ScoreMask DistanceRows::of(const std::optional<std::size_t>& bias, const ScoreMask& own,
                           const Packing& packing, bool counts_tokens) const {
  ScoreMask mask = own;
  mask.by_distance = bias ? rows_[*bias] : others_;
  const bool has_nan = bias ? have_nan_beside_masks_[*bias] : others_have_nan_beside_masks_;
  if (!has_nan || !mask.allowed.defined()) return mask;
  const int64_t length = packing.length;
  const at::Tensor whole =
      relative::pairs_of(mask.distances(length, length), length, length).unsqueeze(0);
  const at::Tensor pairs = (counts_tokens ? whole : packing.kept_pairs(whole)) + mask.bias;
  return {pairs.masked_fill(mask.allowed.logical_not(), -std::numeric_limits<double>::infinity()),
          mask.is_causal};
}

std::size_t add_bias(std::vector<RelativeBias>& all, const RelativePositionBiasImpl& bias) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].table.is_same(bias.weight) && all[i].index == bias.options.index()) return i;
  }
  all.push_back({bias.weight, bias.options.index(), has_nan_beside_masks(bias.weight)});
  return all.size() - 1;
}

}  // namespace posenc::inference
