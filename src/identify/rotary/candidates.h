#pragma once

// Candidates for the rotary embedding that made a table, from its estimated frequencies.

#include <functional>
#include <map>
#include <string>

#include "identify/rotary/estimate.h"
#include "posenc/sinusoid/rotary.h"

namespace posenc::identification {

struct RotaryCandidate {
  RotaryOptions options;
  int64_t length = 0;                         ///< the sequence length that the frequencies are for
  std::map<std::string, std::string> params;  ///< by their names in a config.json
  std::string scaling;                        ///< C++ of options.scaling(); empty for none
  std::string preset = "";                    ///< the only one that has it; empty for any
};

/// Calls `visit` with every candidate, the simplest first, until it returns true.
void for_each_rotary(const RotaryEstimate& estimate,
                     const std::function<bool(const RotaryCandidate&)>& visit);

}  // namespace posenc::identification
