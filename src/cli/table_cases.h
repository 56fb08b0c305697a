#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "posenc/sinusoid/options.h"

namespace posenc::cli {

/// The cells of the recipe's grid. Refuses more than 2^31.
int64_t cells_of(const SinusoidOptions& options);

/// The table of `options`, rows of nominal length `length`; a grid's is its number of cells, and
/// may be left out. Refuses what cannot be made.
at::Tensor table_of(const SinusoidOptions& options, std::optional<int64_t> length);

/// Writes to `output` the tables of the cases that the JSON file `path` lists, each under its name;
/// a case that is refused leaves its message in the metadata instead.
void make_cases(const std::string& path, const std::string& output);

}  // namespace posenc::cli
