#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "posenc/sinusoid/options.h"

namespace posenc::cli {

/// Whether a recipe's channels are pairs of sines and cosines on one axis.
bool has_pairs(const SinusoidOptions& recipe);

/// The sine and the cosine channel of pair `pair`.
std::vector<int64_t> pair_channels(const SinusoidOptions& recipe, int64_t pair);

/// " (sin)" or " (cos)" for a channel of a recipe with pairs, else "".
const char* function_of(const SinusoidOptions& recipe, int64_t channel);

/// Up to six channels of a table (rows, D) whose curves can be distinguished in a plot: for a
/// recipe with pairs, a fast, a slower and a slow pair; otherwise the first channels that are not
/// constant.
std::vector<int64_t> shown_channels(const SinusoidOptions& recipe, const at::Tensor& table);

/// For each axis of a grid, up to three channels that vary along it; `table` is (cells, D).
std::vector<std::vector<int64_t>> shown_grid_channels(const std::vector<int64_t>& grid,
                                                      const at::Tensor& table);

}  // namespace posenc::cli
