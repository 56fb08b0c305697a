#pragma once

#include <cstdint>

namespace posenc {

/// Throws c10::ValueError `[module] dropout must lie in [0, 1). Got p` unless p is in [0, 1).
void check_dropout(const char* module, double p);

/// Throws c10::ValueError `[module] what must be positive. Got value` unless value is positive.
void check_positive(const char* module, const char* what, int64_t value);

/// Positions are below this, and tables have at most that many rows: the exact evaluation is proven
/// up to it, and offsets cannot overflow.
constexpr int64_t kPositionLimit = int64_t{1} << 31;

}  // namespace posenc
