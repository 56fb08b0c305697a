#include "inference/layers/frozen_layers.h"

#include "transformer/layers/layer_parts.h"

namespace posenc::inference {

// Where padding is dropped, what its rows would attend to and its places between tokens are of no
// interest.
ScoreMask FrozenLayers::mask_of(const Packing& packing, const AttentionMask& mask,
                                const at::Tensor& like) const {
  const AttentionMask own =
      packing.covers_mask ? mask : with_token_distances(mask_of_stack(mask, layer_options), alibi);
  return packing.mask_of_rows(own, layer_options.num_heads(), like, counts_tokens);
}

}  // namespace posenc::inference
