#pragma once

#include <c10/util/Exception.h>

#include <tuple>

namespace posenc::train {

/// Throws c10::ValueError unless the value is at least 0.
inline void check_not_negative(const char* optimizer, const char* name, double value) {
  TORCH_CHECK_VALUE(value >= 0.0, "[", optimizer, "] ", name, " must be at least 0. Got ", value);
}

/// Throws c10::ValueError unless both lie in [0, 1).
inline void check_betas(const char* optimizer, const std::tuple<double, double>& betas) {
  const auto [beta1, beta2] = betas;
  TORCH_CHECK_VALUE(beta1 >= 0.0 && beta1 < 1.0 && beta2 >= 0.0 && beta2 < 1.0, "[", optimizer,
                    "] betas must lie in [0, 1). Got (", beta1, ", ", beta2, ")");
}

}  // namespace posenc::train
