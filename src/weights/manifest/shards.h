#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/weights/manifest.h"
#include "weights/common/file.h"

// The index of a sharded checkpoint, as Hugging Face writes it:
//   {"metadata": {...}, "weight_map": {"tensor": "shard file", ...}}
namespace posenc::io {

/// The shards of an index and the tensors that it maps to each, in the order of the text.
struct ShardIndex {
  struct Shard {
    std::string file;  ///< a bare name: the file is in the folder of the index
    std::vector<std::string> tensors;
  };
  std::vector<Shard> shards;
};

/// Whether the file starts like JSON.
bool looks_like_json(const InputFile& file);

/// Throws WeightsError for a name that leads out of the folder, a repeated tensor or too many
/// shards.
ShardIndex parse_index(std::string_view json);

/// The manifests of all shards, each read by `read_shard`, as one. Each tensor has to be in the
/// shard that the index maps it to, and in no other. A tensor that the index lacks is listed like
/// the others, unless two shards have it.
Manifest read_index(const InputFile& file,
                    const std::function<Manifest(const std::string& path)>& read_shard);

}  // namespace posenc::io
