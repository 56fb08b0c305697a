#pragma once

#include <cstdint>

namespace posenc::relative {

/// The largest position, distance and number of rows: sums of a few of them do not overflow.
constexpr int64_t kMostPositions = int64_t{1} << 32;
/// The most patches of a grid: the number of their pairs does not overflow.
constexpr int64_t kMostPatches = int64_t{1} << 24;

}  // namespace posenc::relative
