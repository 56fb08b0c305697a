#pragma once

#include <string>
#include <vector>

#include "cli/modules/script.h"
#include "cli/weights.h"

namespace posenc::cli {

/// For a script whose outputs differ from those of its counterpart, made with `module` and
/// `params`: the option with which they are equal, the scale of the token vectors, batch_first or
/// norm_first, and the --param that sets it. Empty if none explains the difference. Keys and shapes
/// show none of them.
std::string option_hint(const std::string& path, const Script& script, const Weights& weights,
                        const std::string& module, const std::vector<std::string>& params);

}  // namespace posenc::cli
