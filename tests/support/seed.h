#pragma once

#include <cstdint>

namespace posenc::testing {

/// The seed for a test's random numbers: `own` by default, so that runs are identical;
/// POSENC_TEST_SEED=N in the environment gives a different one for each N. A failing test prints N.
/// LibTorch's default generator starts each test from seed(0).
uint32_t seed(uint64_t own);

}  // namespace posenc::testing
