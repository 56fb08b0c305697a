#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace posenc::speech {

/// The columns of each row's first step on the path through `matrix` (rows, columns) float32 that
/// goes right and down and sums least: of equal ways it takes that from the left. -1 for a row that
/// the path passes before the first column, which only NaN brings about.
std::vector<int64_t> time_warping(const at::Tensor& matrix);

/// The median of `width` values around each in the last dimension, reflected at its ends; `x`
/// itself where that is no wider than half.
at::Tensor median_filter(const at::Tensor& x, int64_t width);

/// The time of each of `count` new tokens, in seconds from the beginning of the window.
/// `attention`: (heads, rows, W / 2), of which row k is what the step attends to that reads token
/// k, and which the last token lacks. `columns` of them are of the sound.
///
/// Source: `_extract_token_timestamps` (transformers 5.23.0).
std::vector<float> token_times(const at::Tensor& attention, int64_t columns, int64_t count,
                               int64_t median_width);

}  // namespace posenc::speech
