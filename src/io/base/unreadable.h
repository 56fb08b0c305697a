#pragma once

#include <string>

#include "posenc/io/error.h"
#include "posenc/io/manifest.h"

namespace posenc::io {

/// What a manifest says of a tensor that cannot be read for that reason.
std::string unreadable(const WeightsError& error);

/// For whoever wants every tensor: throws WeightsError that names the first that cannot be read.
void refuse_unreadable(const Manifest& manifest);

}  // namespace posenc::io
