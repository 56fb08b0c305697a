#pragma once

#include "posenc/weights/manifest.h"
#include "weights/common/file.h"

namespace posenc::io {

/// The manifest of one file of weights, whatever its format. Throws WeightsError, also for an index
/// of shards, which is not one file.
Manifest read_single_file(const InputFile& file);

/// Whether the file is an index of shards, judging by its content.
bool looks_like_shard_index(const InputFile& file);

}  // namespace posenc::io
