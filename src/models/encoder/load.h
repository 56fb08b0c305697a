#pragma once

#include <string>

#include "io/load/source.h"
#include "models/encoder/config.h"
#include "posenc/io/load.h"

namespace posenc {

/// Loads the encoder that is described from the weights at `path` in `folder`, as load_encoder()
/// does, which has the errors. `source` are those weights, renamed as `options` say.
Encoder load_described(EncoderConfig config, const io::TensorSource& source,
                       const LoadOptions& options, const std::string& folder,
                       const std::string& path);

}  // namespace posenc
