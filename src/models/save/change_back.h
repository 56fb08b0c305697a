#pragma once

#include "models/encoder/config.h"
#include "posenc/weights/load.h"
#include "posenc/weights/state_dict.h"

namespace posenc {

/// Undoes what the rules of `names` change besides names, where a file has a weight otherwise than
/// the encoder: convolutions, and linear layers in groups. Throws c10::ValueError for a weight that
/// is not zero between its groups.
void change_back(StateDict& tensors, const LoadOptions& names, const EncoderConfig& config);

}  // namespace posenc
