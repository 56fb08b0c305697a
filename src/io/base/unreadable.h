#pragma once

#include <string>

#include "posenc/io/error.h"
#include "posenc/io/manifest.h"

namespace posenc::io {

/// The text in a manifest for a tensor that cannot be read because of `error`.
std::string unreadable(const WeightsError& error);

/// What to do in Python about an object that may hold the weights; empty for other kinds.
std::string remedy_for(EntryKind kind);

/// For callers that need every tensor: throws WeightsError naming the first that cannot be read.
void refuse_unreadable(const Manifest& manifest);

}  // namespace posenc::io
