#pragma once

#include <cstdint>

#include "core/check.h"

namespace posenc::sound {

/// The most samples per second of a file and of features, in Hz: beyond it a few seconds are more
/// than the memory has.
constexpr int64_t kMostRate = 10'000'000;

/// Throws c10::ValueError, which calls it `what`, unless a rate lies in [1, kMostRate].
inline void check_rate(const char* caller, const char* what, int64_t rate) {
  check_positive(caller, what, rate);
  TORCH_CHECK_VALUE(rate <= kMostRate, "[", caller, "] ", what, " must be at most ", kMostRate,
                    " Hz. Got ", rate);
}

}  // namespace posenc::sound
