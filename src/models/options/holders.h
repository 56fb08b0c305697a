#pragma once

#include "inference/freeze/option_holders.h"
#include "posenc/models/attention_pooling.h"
#include "posenc/models/classifier.h"
#include "posenc/models/decoder.h"

namespace posenc {

/// The classes with options that freezable encoders and classifiers hold besides; lint compares
/// them, and those of inference/freeze/option_holders.h, with the headers.
using ModelOptionHolders =
    ModuleClasses<AttentionPoolingImpl, ClassifierImpl, DecoderImpl, EncoderHeadImpl, EncoderImpl>;

}  // namespace posenc
