#pragma once

#include <cstdint>

namespace posenc {

/// Positions are below this, and tables have at most that many rows: the exact evaluation is proven
/// up to it, and offsets cannot overflow.
constexpr int64_t kPositionLimit = int64_t{1} << 31;

}  // namespace posenc
