#pragma once

#include "posenc/models/encoder.h"
#include "posenc/weights/state_dict.h"

namespace posenc::differential {

// The inputs of an encoder by their names in transformers, and its results.

/// Undefined where inputs_embeds are given.
at::Tensor encoder_input(const StateDict& tensors);
EncoderInputs encoder_inputs(const StateDict& tensors);
StateDict encoder_results(const EncoderOutput& out);

}  // namespace posenc::differential
