#pragma once

#include <map>
#include <string>

#include "io/safetensors/writer.h"

namespace posenc::io {

/// Writes the shards of each process into a separate file in `folder`, and all other tensors into
/// that of rank 0, in the layout of torch.distributed.checkpoint:
///
///     shard-00001-model-00001-of-00001.safetensors   rank 0's
///     metadata: DCP_SHARDING_INFO {"name": {"saved_offsets": [first row, 0]}}, DCP_VERSION "1.0"
///
/// The folder is created if necessary. It must not contain safetensors files, since a reader would
/// mistake those of an earlier save by more processes for shards of this one. A collective; for
/// errors see write_safetensors(). If one process cannot write, the others remove their files.
void write_safetensors_shards(const std::string& folder, const GroupTensors& all,
                              const std::map<std::string, std::string>& metadata,
                              const char* caller);

}  // namespace posenc::io
