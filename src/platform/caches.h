#pragma once

#include <cstdint>

namespace posenc::platform {

/// The sizes of this machine's caches, in bytes, read once.
struct Caches {
  int64_t level2;
  /// The size of an output from which non-temporal stores pay off: max(16 MB, half of the
  /// last-level cache).
  int64_t stream_bytes;
};
const Caches& caches();

}  // namespace posenc::platform
