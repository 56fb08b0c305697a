#pragma once

#include <string>
#include <vector>

#include "cli/twin.h"

namespace posenc::cli {

/// One input on which script and twin are compared.
struct Probe {
  std::string name;
  at::Tensor input;
};

/// Edge cases and random inputs for a twin, from a fixed seed: length 1, max_len, first and last
/// id, repeated ids, batches of one and several.
std::vector<Probe> probes(const Twin& twin);

/// Images for `input` timesteps: one for all, (C, 28, 28), and one each, (N, C, 5, 7).
std::vector<Probe> image_probes(const Twin& twin, const at::Tensor& input);

}  // namespace posenc::cli
