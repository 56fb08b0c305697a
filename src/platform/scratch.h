#pragma once

#include <cstdint>

namespace posenc::platform {

/// What a thread keeps from call to call, so that nothing is allocated in the middle of a layer.
enum class Scratch { Panel, Hidden, Branch, Scores };
constexpr int kScratches = 4;

/// This thread's memory for `floats`, aligned to a cache line; it is what it was until this thread
/// asks for more of the same.
float* scratch(Scratch kind, int64_t floats);

}  // namespace posenc::platform
