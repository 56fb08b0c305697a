#pragma once

#include <string>
#include <vector>

#include "cli/difference.h"
#include "cli/modules/module_spec.h"
#include "cli/modules/script.h"

namespace posenc::cli {

/// What came of one call of script and counterpart.
struct Outcome {
  std::string name, shape;  ///< of the inputs
  Difference difference;
  std::string failure;  ///< what kept the two from being compared
  bool good = false;    ///< equal, or as near as may be
};

/// Calls both with every probe that the arguments of the script, in the file `path`, allow. Refuses
/// one whose forward needs what the counterpart does not take.
std::vector<Outcome> outcomes_of(const std::string& path, const Script& script, ModuleSpec& spec);

}  // namespace posenc::cli
