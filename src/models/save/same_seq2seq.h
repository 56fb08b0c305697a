#pragma once

#include "models/config/settings.h"
#include "posenc/transformer/transformer.h"

namespace posenc {

/// Throws c10::ValueError, naming the option, if `saved`, which `config` says, computes something
/// else than `wanted`.
void check_same(const TransformerOptions& saved, const TransformerOptions& expected,
                const Settings& config);

}  // namespace posenc
