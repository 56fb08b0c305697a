// Single layers that compute in bfloat16, for bfloat16.py.

#include "differential/packed_layer.h"

namespace posenc::differential {

Ops bfloat16_ops() { return {{"bfloat16_layer", packed_layer<inference::PackedBFloat16Weight>}}; }

}  // namespace posenc::differential
