#include "io/safetensors/shard_writer.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "io/base/json.h"
#include "parallel/collectives.h"
#include "posenc/io/error.h"

namespace posenc::io {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExtension = ".safetensors";

// The file numbers begin at 1. Each process writes one file: "00001-of-00001".
std::string shard_path(const std::string& folder, int rank) {
  return (fs::path(folder) /
          fmt::format("shard-{:05}-model-00001-of-00001{}", rank + 1, kExtension))
      .string();
}

void refuse_other_shards(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != kExtension) continue;
    throw WeightsError(WeightsErrorCode::Shard,
                       "must not hold safetensors files before shards are saved there. Got " +
                           entry.path().filename().string(),
                       "choose a new folder for each save");
  }
}

void prepare(const std::string& folder, bool is_first) {
  try {
    fs::create_directories(folder);
    if (is_first) refuse_other_shards(folder);
  } catch (const fs::filesystem_error& error) {
    throw WeightsError(WeightsErrorCode::Io, "cannot be written to: " + error.code().message());
  }
}

// The tensors that this process writes, and where each part begins in the whole tensor.
struct OwnShards {
  StateDict tensors;
  std::string offsets = "{";
};

OwnShards own_shards(const GroupTensors& all) {
  OwnShards own;
  for (const auto& item : all.tensors) {
    const auto shard = all.shards.find(item.key());
    const bool is_shard = shard != all.shards.end();
    if (is_shard ? item.value().size(0) == 0 : all.group.rank() != 0) continue;
    own.tensors.insert(item.key(), item.value());
    std::string offsets;
    for (int64_t axis = 0; axis < item.value().dim(); ++axis) {
      const int64_t begin = is_shard && axis == 0 ? shard->second.first : 0;
      offsets += (axis > 0 ? "," : "") + std::to_string(begin);
    }
    own.offsets += (own.offsets.size() > 1 ? "," : "") + json_string(item.key()) +
                   ":{\"saved_offsets\":[" + offsets + "]}";
  }
  own.offsets += "}";
  return own;
}

}  // namespace

void write_safetensors_shards(const std::string& folder, const GroupTensors& all,
                              const std::map<std::string, std::string>& metadata,
                              const char* caller) {
  const RankGroup& group = all.group;
  for (const auto& [name, shard] : all.shards)
    rows_of_ranks(all.tensors[name], shard, group, caller);  // refuses another group's shards
  parallel::all_or_none(group, [&] { prepare(folder, group.rank() == 0); }, caller);
  const std::string path = shard_path(folder, group.rank());
  bool is_written = false;
  try {
    parallel::all_or_none(
        group,
        [&] {
          const OwnShards own = own_shards(all);
          if (own.tensors.is_empty()) return;
          auto values = metadata;
          values["DCP_SHARDING_INFO"] = own.offsets;
          values["DCP_VERSION"] = "1.0";
          write_safetensors(path, own.tensors, values);
          is_written = true;
        },
        caller);
  } catch (...) {
    std::error_code ignored;
    if (is_written) fs::remove(path, ignored);
    throw;
  }
}

}  // namespace posenc::io
