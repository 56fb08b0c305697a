#include "inference/layers/frozen_layers.h"

#include <ATen/ops/arange.h>

#include <algorithm>

#include "transformer/layers/layer_parts.h"

namespace posenc::inference {

AttentionMask FrozenLayers::bias_of_keys(const AttentionMask& mask, int64_t length) const {
  const at::Tensor tokens = alibi->counts_tokens ? mask.padding_keys() : at::Tensor();
  return AttentionMask::additive(alibi->of_keys(
      tokens.defined() ? alibi_positions(tokens) : at::arange(length, at::kLong).unsqueeze(0)));
}

// Where padding is dropped, what its rows would attend to and its places between tokens are of no
// interest.
ScoreMask FrozenLayers::mask_of(const Packing& packing, const AttentionMask& mask,
                                const at::Tensor& like) const {
  const AttentionMask own =
      packing.covers_mask ? mask : with_token_distances(mask_of_stack(mask, layer_options), alibi);
  const bool has_biases = alibi && alibi->of_positions;
  return packing.mask_of_rows(has_biases ? own & bias_of_keys(mask, packing.length) : own,
                              layer_options.num_heads(), like, counts_tokens);
}

ScoreMask FrozenLayers::causal_mask(const Packing& packing) const {
  ScoreMask mask;
  mask.is_causal = true;
  if (!alibi || !alibi->of_positions) return mask;
  int64_t longest = 0;
  for (int64_t b = 0; b < packing.batch; ++b)
    longest = std::max(longest, packing.past[b] + packing.lengths[b]);
  mask.bias = alibi->of_keys(at::arange(longest, at::kLong).unsqueeze(0));
  return mask;
}

}  // namespace posenc::inference
