#pragma once

#include <cstdint>
#include <cstdlib>

namespace posenc::testing {

/// Whether the tests are to take their whole samples: `make test-all` sets POSENC_EXHAUSTIVE=1.
inline bool exhaustive() { return std::getenv("POSENC_EXHAUSTIVE") != nullptr; }

/// How many of `all` random samples a test takes: a tenth, or all of them where exhaustive().
inline int64_t samples(int64_t all) { return exhaustive() ? all : (all + 9) / 10; }

}  // namespace posenc::testing
