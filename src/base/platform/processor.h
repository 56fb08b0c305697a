#pragma once

#include <cstdint>

#pragma once

namespace posenc::platform {

/// The sizes of this machine's caches, in bytes, read once.
struct Caches {
  int64_t level2;
  /// The size of an output from which non-temporal stores pay off: max(16 MB, half of the
  /// last-level cache).
  int64_t stream_bytes;
};
const Caches& caches();

// Whether this processor has these instructions, which the architecture does not prescribe, and the
// operating system lets programs use them.
#if defined(__x86_64__)
bool runs_avx2();        // with FMA and F16C, which every processor with AVX2 has
bool runs_avx2vnni();    // also products of bytes (AVX-VNNI)
bool runs_avx512();      // F, DQ, BW and VL, with FMA
bool runs_avx512vnni();  // also products of bytes
bool runs_avx512bf16();  // also those, and products of bfloat16
#elif defined(__aarch64__)
bool runs_neondot();  // products of bytes
#endif

}  // namespace posenc::platform
