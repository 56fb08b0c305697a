#pragma once

#include "models/config/settings.h"
#include "posenc/models/encoder.h"

namespace posenc {

/// EncoderStructure::windows: all options of an encoder in windows, without the pooling. Each
/// throws c10::ValueError for settings that are wrong, and for those with which transformers has a
/// model that cannot be run.
using ReadWindows = EncoderOptions(const Settings& config);
ReadWindows read_donut_swin, read_sam, read_swin, read_swin_v2;

}  // namespace posenc
