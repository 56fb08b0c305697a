#pragma once

#include <map>
#include <set>
#include <string>

#include "posenc/train/group.h"
#include "posenc/weights/state_dict.h"

namespace posenc::io {

/// Tensors of which each process of a group has its copy.
struct GroupTensors {
  StateDict tensors;
  /// Names of tables that each process computes, and that may have grown to different lengths.
  std::set<std::string> computed = {};
};

/// Writes the safetensors file that a single process would write, on rank 0, from its own copies. A
/// collective; `caller` is named in its errors. Throws WeightsError on the process that fails and
/// GroupError on the others; if the tensors are invalid, WeightsError on each; if names, dtypes or
/// shapes differ, GroupError on each.
void write_group_file(const RankGroup& group, const std::string& path, const GroupTensors& all,
                      const std::map<std::string, std::string>& metadata, const char* caller);

}  // namespace posenc::io
