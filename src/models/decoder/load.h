#pragma once

#include <string>

#include "posenc/models/decoder.h"

namespace posenc {

/// load_decoder() in the name of another public function.
Decoder load_decoder_for(const char* caller, const std::string& folder, const LoadOptions& options);

}  // namespace posenc
