#pragma once

#include <ostream>

#include "posenc/core/embedding_init.h"
#include "posenc/core/scale.h"
#include "posenc/nn/positional_encoding.h"

namespace posenc {

/// `, scale=sqrt(d_model)` or `, scale=0.5`; nothing for Scale::None.
void print(std::ostream& stream, const Scale& scale);

/// `, embedding_init=StandardNormal`; nothing for the module's default.
void print(std::ostream& stream, EmbeddingInit init, EmbeddingInit by_default);

/// `max_len=77, batch_first=false, grow=true`: max_len, and the options that differ from their
/// defaults.
void print(std::ostream& stream, const PositionalEncodingOptions& options);

}  // namespace posenc
