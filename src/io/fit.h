#pragma once

#include <set>
#include <string>

#include "posenc/io/state_dict.h"

namespace posenc::io {

/// load_state_dict() for the loaders: `subject` begins the error ("[load_weights] model.pt"), and
/// the names of `optional` (complete, the file's) are reported when unexpected but are no error.
LoadReport load_fitting(torch::nn::Module& module, const StateDict& tensors,
                        const LoadOptions& options, const std::string& subject,
                        const std::set<std::string>& optional = {});

}  // namespace posenc::io
