#pragma once

#include <cstdint>
#include <string_view>

namespace posenc::base {

/// XXH64 with seed 0, a checksum of 64 bits: it finds every accident, and is no protection against
/// intent. Some 10 GB a second.
///
/// Source: xxHash 0.8, doc/xxhash_spec.md.
uint64_t xxhash64(std::string_view bytes);

}  // namespace posenc::base
