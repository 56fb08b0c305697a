#pragma once

#include <cstdint>
#include <string>

#include "io/torch/zip/index.h"

namespace posenc::io {

/// The bytes of a record that is stored or deflated. Throws WeightsError: LimitExceeded beyond
/// `limit` bytes, Corrupt where it does not unpack to the size that it declares.
std::string inflate(const ZipIndex& index, const ZipRecord& record, uint64_t limit);

}  // namespace posenc::io
