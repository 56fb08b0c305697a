#pragma once

#include <string>

#include "posenc/models/save_pretrained.h"

namespace posenc {

/// Throws c10::ValueError for a folder that may not be written to: `origin`, that which the model
/// was loaded from, and SavePretrainedOptions::rest_of, unless `options` allow it.
void check_target(const std::string& origin, const std::string& folder,
                  const SavePretrainedOptions& options);

}  // namespace posenc
