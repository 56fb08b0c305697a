#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "posenc/positions/sinusoid/options.h"

namespace posenc::cli {

/// Number of cells of the recipe's grid. Throws CommandError for more than 2^31.
int64_t cells_of(const SinusoidOptions& options);

/// The table of `options` for the nominal length `length`. For a grid it must be the number of
/// cells, or nullopt. Throws CommandError for an invalid table.
at::Tensor table_of(const SinusoidOptions& options, std::optional<int64_t> length);

/// Makes the tables for the cases listed in the JSON file `path` and writes them to `output` under
/// their names. A rejected case leaves its message in the metadata instead.
void make_cases(const std::string& path, const std::string& output);

}  // namespace posenc::cli
