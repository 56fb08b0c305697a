#pragma once

#include <string>
#include <vector>

#include "cli/difference.h"
#include "cli/modules/module_spec.h"
#include "cli/modules/script.h"

namespace posenc::cli {

/// The result of calling script and counterpart once.
struct Outcome {
  std::string name, shape;  ///< of the inputs
  Difference difference;
  std::string failure;  ///< why the two could not be compared
  bool good = false;    ///< equal, or within tolerance
};

/// Calls both with every probe that suits the arguments of the script in the file `path`. Throws
/// CommandError if its forward requires an argument that the counterpart does not take.
std::vector<Outcome> outcomes_of(const std::string& path, const Script& script, ModuleSpec& spec);

}  // namespace posenc::cli
