#pragma once

#include <cstdint>
#include <vector>

#include "tokenizers/pipeline/truncation.h"

namespace posenc::text {

/// Cuts one or two texts of these lengths to `room` tokens as PythonBackend does
/// (`truncate_sequences()`), which differs from `tokenizers` where both texts are cut. Returns the
/// number of texts that are left: an empty second text that is cut from the left is none any more.
/// Throws ArgumentError where it would not cut enough.
std::size_t truncate_as_python(const TruncationRule& rule, std::size_t room,
                               const std::vector<std::size_t>& lengths,
                               std::vector<Windows>& windows);

}  // namespace posenc::text
