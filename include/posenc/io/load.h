#pragma once

#include <string>

#include "posenc/io/state_dict.h"

namespace posenc {

/// Loads the weights in `path` (TorchScript or safetensors, told apart by content, not by name)
/// into `module`, all or nothing; see load_state_dict().
///
/// TorchScript keeps non-persistent buffers and does not say which they are: a buffer of the file
/// that the module lacks is reported as unexpected, but is no error.
LoadReport load_weights(torch::nn::Module& module, const std::string& path,
                        const LoadOptions& options = {});

}  // namespace posenc
