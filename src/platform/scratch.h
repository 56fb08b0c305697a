#pragma once

#include <cstdint>

namespace posenc::platform {

/// Buffers that a thread keeps from call to call, so that no layer allocates.
enum class Scratch { Panel, Hidden, Branch, Scores, Rotation };
constexpr int kScratches = 5;

/// This thread's buffer of at least `floats`, aligned to a cache line; its contents persist until
/// this thread requests a larger one of the same kind.
float* scratch(Scratch kind, int64_t floats);

}  // namespace posenc::platform
