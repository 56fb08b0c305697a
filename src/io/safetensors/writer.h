#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "io/base/targets.h"
#include "posenc/io/state_dict.h"
#include "posenc/parallel/group.h"

namespace posenc::io {

/// Writes contiguous little-endian copies of `tensors`, all or nothing. Throws WeightsError.
void write_safetensors(const std::string& path, const StateDict& tensors,
                       const std::map<std::string, std::string>& metadata);

/// Tensors that a group of processes writes together.
struct GroupTensors {
  StateDict tensors;
  Shards shards = {};  ///< by the names of `tensors`; the others are the same on every process
  RankGroup group = {};
  /// Names of tables that each process computes, and that may have grown to different lengths.
  std::set<std::string> computed = {};
};

/// The number of rows of a shard on each process of `group`. A collective. Throws WeightsError on
/// all of them unless the shards make up the whole tensor, in the order of the ranks.
std::vector<int64_t> rows_of_ranks(const at::Tensor& tensor, const ShardedName& shard,
                                   const RankGroup& group, const char* caller);

/// Writes the file that a single process with the whole tensors would write: rank 0 writes it,
/// using its own copies of tensors that are not shards, and receives the rows of shards in blocks
/// of at most 64 MB. A collective; `caller` is named in its errors. Throws WeightsError on the
/// process that fails and GroupError on the others; if the tensors are invalid, WeightsError on
/// each.
void write_safetensors(const std::string& path, const GroupTensors& all,
                       const std::map<std::string, std::string>& metadata, const char* caller);

}  // namespace posenc::io
