#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/modules/module_spec.h"

namespace posenc::cli {

/// One call on which script and counterpart are compared.
struct Probe {
  std::string name;
  Call call;
};

/// Edge cases and random inputs for a counterpart, from a fixed seed: length 1, max_len, first and
/// last id, repeated ids, batches of one and several, and then with all of `masks` (names of
/// arguments).
std::vector<Probe> probes(const ModuleSpec& spec, const std::set<std::string>& masks);

/// `probe`, whose input are timesteps, with images besides: one for all, (C, 28, 28), and one each,
/// (N, C, 5, 7).
std::vector<Probe> image_probes(const ModuleSpec& spec, const Probe& probe);

}  // namespace posenc::cli
