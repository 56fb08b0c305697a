#pragma once

#include <c10/util/Exception.h>

#include <cstdint>

#include "core/position_limit.h"

namespace posenc {

/// Throws c10::ValueError `[module] dropout must lie in [0, 1). Got p` unless p is in [0, 1).
inline void check_dropout(const char* module, double p) {
  TORCH_CHECK_VALUE(p >= 0.0 && p < 1.0, "[", module, "] dropout must lie in [0, 1). Got ", p);
}

/// Throws c10::ValueError `[module] what must be positive. Got value` unless value is positive.
inline void check_positive(const char* module, const char* what, int64_t value) {
  TORCH_CHECK_VALUE(value > 0, "[", module, "] ", what, " must be positive. Got ", value);
}

}  // namespace posenc
