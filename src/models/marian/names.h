#pragma once

#include <string>

#include "io/load/load_plan.h"
#include "io/load/source.h"
#include "posenc/io/load.h"
#include "posenc/models/transformer.h"

namespace posenc {

/// MarianMTModel's name of the matrix that its embeddings may share.
constexpr const char* kMarianShared = "model.shared.weight";

/// How MarianMTModel's state_dict in `source` becomes that of a posenc::Transformer with these
/// options.
LoadOptions marian_load_options(const TransformerOptions& options, const io::TensorSource& source);
io::FormatNames marian_format_names(Tying tying);

/// MarianMTModel's name of the model's tensor `name`; for a packed tensor, that of its first part.
std::string marian_name(const std::string& name);

}  // namespace posenc
