#pragma once

#include <cstdint>

namespace posenc::testing {

/// The seed of what a test draws: `own`, so that runs are alike, or with POSENC_TEST_SEED=N in the
/// environment another number for each N. A test that fails prints the N in force. What LibTorch's
/// default generator gives to a test begins with seed(0) in each of them.
uint32_t seed(uint64_t own);

}  // namespace posenc::testing
