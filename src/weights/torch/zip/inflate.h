#pragma once

#include <cstdint>
#include <string>

#include "weights/torch/zip/index.h"

namespace posenc::io {

/// The bytes of a stored or deflated record. Throws WeightsError: LimitExceeded beyond `limit`
/// bytes, Corrupt if it does not unpack to the size that it declares.
std::string inflate(const ZipIndex& index, const ZipRecord& record, uint64_t limit);

}  // namespace posenc::io
