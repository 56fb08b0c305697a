#pragma once

#include "inference/linear/weight_converter.h"
#include "posenc/models/frozen_encoder.h"

namespace posenc::inference {

/// The encoder inside a model whose parameters `convert` was made for. `multiplied`: the table of
/// tokens, if the model multiplies by it as well; else undefined.
FrozenEncoder freeze_part(const EncoderImpl& model, WeightConverter& convert,
                          const at::Tensor& multiplied = {});

}  // namespace posenc::inference
