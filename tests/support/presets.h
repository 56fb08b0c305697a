#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "posenc/positions/sinusoid/preset.h"

namespace posenc::testing {

/// Options and a nominal length that a preset supports.
struct PresetCase {
  SinusoidOptions options;
  int64_t length;
};

/// A preset at width `dim` with default parameters and `length` rows, or a grid with about as many
/// cells; nullopt if it does not support that width.
std::optional<PresetCase> case_of(const Preset& entry, int64_t dim, int64_t length = 50);

/// The first preset of each recipe whose rows are those of positions 0, 1, ...: one axis, one
/// number per row, none of them zeroed, and nothing that depends on the table as a whole.
std::vector<std::string> plain_presets();

}  // namespace posenc::testing
