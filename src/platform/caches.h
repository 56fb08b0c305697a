#pragma once

#include <cstdint>

namespace posenc::platform {

/// What this machine's caches hold, in bytes, asked for once.
struct Caches {
  int64_t level2;
  /// From this size of an output on non-temporal stores pay: max(16 MB, half of the last cache).
  int64_t stream_bytes;
};
const Caches& caches();

}  // namespace posenc::platform
