#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/modules/module_spec.h"

namespace posenc::cli {

/// One call for which script and counterpart are compared.
struct Probe {
  std::string name;
  Call call;
};

/// Edge cases and random inputs for a counterpart, from a fixed seed: length 1, max_len, first and
/// last id, repeated ids, single and batched sequences, and finally all of `masks` (argument
/// names).
std::vector<Probe> probes(const ModuleSpec& spec, const std::set<std::string>& masks);

/// `probe`, whose input is timesteps, with images added: one shared, (C, 28, 28), and one per
/// timestep, (N, C, 5, 7).
std::vector<Probe> image_probes(const ModuleSpec& spec, const Probe& probe);

}  // namespace posenc::cli
