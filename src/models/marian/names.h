#pragma once

#include <string>

#include "io/load/load_plan.h"
#include "posenc/io/load.h"
#include "posenc/models/tying.h"

namespace posenc {

/// MarianMTModel's name of the matrix that its embeddings may share.
constexpr const char* kMarianShared = "model.shared.weight";

/// How MarianMTModel's state_dict becomes a posenc::Transformer's with these ties.
LoadOptions marian_load_options(Tying tying);
io::FormatNames marian_format_names(Tying tying);

/// The name that MarianMTModel has for the model's tensor `name`; of a pack the first one's.
std::string marian_name(const std::string& name);

}  // namespace posenc
