#pragma once

#include "inference/linear/weight_converter.h"
#include "posenc/models/frozen_encoder.h"

namespace posenc::inference {

/// The encoder inside a model whose parameters `convert` was made for.
FrozenEncoder freeze_part(const EncoderImpl& model, WeightConverter& convert);

}  // namespace posenc::inference
