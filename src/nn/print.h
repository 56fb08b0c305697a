#pragma once

#include <ostream>

#include "posenc/core/scale.h"
#include "posenc/nn/positional_encoding.h"

namespace posenc {

/// `, scale=sqrt(d_model)` or `, scale=0.5`; nothing for Scale::None.
void print(std::ostream& stream, const Scale& scale);

/// `max_len=77, batch_first=false, grow=true`: max_len, and the options that differ from their
/// defaults.
void print(std::ostream& stream, const PositionalEncodingOptions& options);

}  // namespace posenc
