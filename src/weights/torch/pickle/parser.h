#pragma once

#include <cstddef>

#include "weights/torch/pickle/pickle.h"

namespace posenc::io {

/// Parses one pickle of protocol 2 to 5 from the bytes of `into`, at `at` or the beginning, and
/// moves `at` past it. Returns its root. Throws WeightsError.
PickleId parse_pickle(Pickle& into, std::size_t* at = nullptr);

}  // namespace posenc::io
