#pragma once

#include <string>
#include <vector>

#include "parity/program/counterpart.h"
#include "parity/program/difference.h"
#include "parity/program/script.h"

namespace posenc::parity {

/// The result of calling script and counterpart once.
struct Outcome {
  std::string name, shape;  ///< of the inputs
  Difference difference;
  std::string failure;  ///< why the two could not be compared
  bool good = false;    ///< equal, or within tolerance
};

/// Calls both with every probe that suits the arguments of the script. Throws CommandError if its
/// forward requires an argument that the counterpart does not take.
std::vector<Outcome> outcomes_of(const Script& script, const Counterpart& made);

/// For a script whose outputs differ from those of its counterpart, made with `module` and
/// `params`: the option with which they are equal, the scale of the token vectors, batch_first or
/// norm_first, and the --param that sets it. Empty if none explains the difference. Keys and shapes
/// show none of them.
std::string option_hint(const Script& script, const Weights& weights, const std::string& module,
                        const Names& params);

}  // namespace posenc::parity
