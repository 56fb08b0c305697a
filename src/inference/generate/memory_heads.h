#pragma once

#include <vector>

#include "inference/freeze/model.h"

namespace posenc::inference {

/// The keys and values of encoded sources for the attention of each layer of a decoder to them.
/// Those of a layer and head follow each other, so that a step reads memory in order.
struct MemoryHeads {
  MemoryHeads(const TransformerModel& model, const Memory& memory);

  /// The offset of a layer's keys in `tokens`, and from a token's keys to its values.
  int64_t keys_of(int64_t layer) const { return 2 * layer * values; }
  /// The keys (Hkv, tokens, Dh) of a source in a layer.
  at::Tensor keys(int64_t layer, int64_t source) const {
    return heads[2 * layer].narrow(1, packing.first[source], packing.lengths[source]);
  }

  Packing packing;
  at::Tensor heads;             ///< (2 layers, Hkv, rows, Dh): keys, then values, of each layer
  int64_t head_stride, values;  ///< in floats: of a layer's keys, and of all its heads
  std::vector<const float*> tokens;  ///< of each row: its first head in the first layer's keys
};

}  // namespace posenc::inference
