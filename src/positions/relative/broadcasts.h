#pragma once

#include <c10/util/ArrayRef.h>

#include <algorithm>
#include <cstdint>

namespace posenc::relative {

/// Whether tensors of these sizes can be added: from the last axis on, sizes are equal or one is 1.
inline bool broadcasts(c10::IntArrayRef a, c10::IntArrayRef b) {
  const std::size_t shared = std::min(a.size(), b.size());
  return std::equal(a.end() - shared, a.end(), b.end() - shared,
                    [](int64_t x, int64_t y) { return x == y || x == 1 || y == 1; });
}

/// Whether a tensor of sizes `a` can be added to one of sizes `b` without enlarging that.
inline bool broadcasts_to(c10::IntArrayRef a, c10::IntArrayRef b) {
  return a.size() <= b.size() && std::equal(a.begin(), a.end(), b.end() - a.size(),
                                            [](int64_t x, int64_t y) { return x == y || x == 1; });
}

}  // namespace posenc::relative
