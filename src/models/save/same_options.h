#pragma once

#include "models/encoder/config.h"
#include "posenc/models/encoder.h"

namespace posenc {

/// Throws c10::ValueError unless an encoder of `saved` has the options of `model`, so that what is
/// saved with this config.json computes the same.
void check_same(const EncoderConfig& saved, const EncoderImpl& model);

}  // namespace posenc
