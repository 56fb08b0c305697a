#pragma once

#include <set>
#include <string>
#include <vector>

#include "parity/program/counterpart.h"

namespace posenc::parity {

/// One call for which script and counterpart are compared.
struct Probe {
  std::string name;
  Call call;
};

/// Edge cases and random inputs for a counterpart, from a fixed seed: length 1, max_len, first and
/// last id, repeated ids, single and batched sequences, and finally all of `masks` (argument
/// names).
std::vector<Probe> probes(const Counterpart& made, const std::set<std::string>& masks = {});

/// The same for timesteps that are added to images: to one, (C, 28, 28), and to one per timestep,
/// (N, C, 5, 7).
std::vector<Probe> image_probes(const Counterpart& made);

}  // namespace posenc::parity
