#pragma once

#include <string>
#include <vector>

#include "cli/modules/script.h"
#include "cli/weights.h"

namespace posenc::cli {

/// For a script whose outputs differ from those of its counterpart, made with `module` and
/// `params`: the scale of the token vectors with which they are equal, and the --param that sets
/// it. Empty if the scale does not explain the difference. Keys and shapes do not show it.
std::string scale_hint(const std::string& path, const Script& script, const Weights& weights,
                       const std::string& module, const std::vector<std::string>& params);

}  // namespace posenc::cli
