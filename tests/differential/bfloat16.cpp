// Single layers that compute in bfloat16, for bfloat16.py.

#include "differential/packed_layer.h"

namespace posenc::differential {
namespace {

StateDict bfloat16_layer(const Json& options, const StateDict& tensors) {
  return packed_layer(options, tensors,
                      [&] { return inference::PackedBFloat16Weight(tensors["weight"]); });
}

}  // namespace

Ops bfloat16_ops() { return {{"bfloat16_layer", bfloat16_layer}}; }

}  // namespace posenc::differential
