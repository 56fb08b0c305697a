#include "models/pretrained/write_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <vector>

#include "io/base/file.h"
#include "io/safetensors/writer.h"
#include "posenc/io/error.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWhole = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

struct Shard {
  StateDict tensors;
  int64_t bytes = 0;
};

// A tensor that is larger than a shard has one of its own.
std::vector<Shard> shards_of(const StateDict& tensors, int64_t most) {
  std::vector<Shard> shards(1);
  for (const auto& item : tensors) {
    const auto bytes = static_cast<int64_t>(item.value().nbytes());
    if (shards.back().bytes > 0 && shards.back().bytes + bytes > most) shards.emplace_back();
    shards.back().tensors.insert(item.key(), item.value());
    shards.back().bytes += bytes;
  }
  return shards;
}

// Whether the name is that of weights which transformers saves.
bool is_saved_weights(const std::string& name) {
  return name == kWhole || name == kIndex ||
         (name.starts_with("model-") && name.ends_with(".safetensors"));
}

// A file that is gone already, or that cannot be removed, is no reason to fail: the new weights are
// found before shards, and the caller has written all of them.
void remove_others(const std::string& folder, const std::set<std::string>& written) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (is_saved_weights(name) && written.count(name) == 0) fs::remove(entry.path(), ignored);
  }
}

// Returns the names of the files.
std::set<std::string> write_weights(const fs::path& folder, const std::vector<Shard>& shards) {
  std::set<std::string> written;
  nlohmann::json index = {{"metadata", {{"total_size", int64_t{0}}}},
                          {"weight_map", nlohmann::json::object()}};
  int64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name =
        shards.size() == 1 ? kWhole
                           : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    const std::string path = (folder / name).string();
    io::in_file(path, [&] { io::write_safetensors(path, shards[i].tensors, {{"format", "pt"}}); });
    for (const auto& item : shards[i].tensors) index["weight_map"][item.key()] = name;
    total += shards[i].bytes;
    written.insert(name);
  }
  if (shards.size() == 1) return written;
  index["metadata"]["total_size"] = total;
  write_json_file((folder / kIndex).string(), index);
  written.insert(kIndex);
  return written;
}

}  // namespace

void make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return;
  throw WeightsError(WeightsErrorCode::Io, "cannot be made a folder: " + error.message())
      .in_file(folder);
}

void write_json_file(const std::string& path, const nlohmann::json& value) {
  const std::string text = value.dump(2) + "\n";
  io::in_file(path, [&] {
    io::AtomicFile file(path);
    file.write(text.data(), text.size());
    file.commit();
  });
}

void write_pretrained(const char* caller, const std::string& folder, const nlohmann::json& config,
                      const StateDict& tensors, int64_t max_shard_bytes) {
  io::in_context(caller, folder, [&] {
    make_folder(folder);
    const auto written = write_weights(folder, shards_of(tensors, max_shard_bytes));
    // An earlier model.safetensors would be found before the index of the shards.
    remove_others(folder, written);
    write_json_file((fs::path(folder) / "config.json").string(), config);
  });
}

}  // namespace posenc
