#include "models/save/write_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "posenc/weights/error.h"
#include "weights/safetensors/writer.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWhole = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kConfig = "config.json";

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

// The name of a file in the folder `inner`, which may be the folder itself.
std::string name_in(const std::string& inner, const std::string& name) {
  return (fs::path(inner) / name).generic_string();
}

}  // namespace

FolderWriter::FolderWriter(const std::string& folder) : folder_(folder) { make_folder(folder_); }

FolderWriter::~FolderWriter() {
  files_.clear();
  if (committed_) return;
  std::error_code ignored;
  for (auto path = made_.rbegin(); path != made_.rend(); ++path) fs::remove(*path, ignored);
}

void FolderWriter::make_folder(const fs::path& folder) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path path = folder; !path.empty() && !fs::exists(path, error); path = path.parent_path())
    missing.push_back(path);
  made_.insert(made_.end(), missing.rbegin(), missing.rend());
  error.clear();
  fs::create_directories(folder, error);
  if (!error) return;
  throw WeightsError(WeightsErrorCode::Io, "cannot be made a folder: " + error.message())
      .in_file(folder.string());
}

template <typename Write>
void FolderWriter::add(const std::string& name, const Write& write) {
  const fs::path path = folder_ / name;
  if (path.parent_path() != folder_) make_folder(path.parent_path());
  files_.remove_if([&](const File& file) { return file.name == name; });
  io::in_file(path.string(), [&] {
    files_.emplace_back(name, path.string());
    write(files_.back().file);
  });
}

void FolderWriter::add_written(const std::string& name,
                               const std::function<void(io::AtomicFile&)>& write) {
  add(name, write);
}

void FolderWriter::add_text(const std::string& name, const std::string& text) {
  add(name, [&](io::AtomicFile& file) { file.write(text.data(), text.size()); });
}

void FolderWriter::add_json(const std::string& name, const nlohmann::json& value) {
  add_text(name, value.dump(2) + "\n");
}

void FolderWriter::add_weights(const std::string& name, const StateDict& tensors) {
  add(name, [&](io::AtomicFile& file) {
    io::SafetensorsWriter(tensors, {{"format", "pt"}}).write(file);
  });
}

void FolderWriter::add_copy(const std::string& name, const std::string& path) {
  const bool is_empty = io::in_file(path, [&] {
    char first = 0;
    return platform::read_at(platform::open_to_read(path), 0, &first, 1) == 0;
  });
  add_text(name, is_empty ? "" : io::read_text(path, std::numeric_limits<uint64_t>::max()));
}

void FolderWriter::add_model(const std::string& inner, const PretrainedFolder& contents) {
  models_.insert(inner);
  const auto shards = shards_of(contents.tensors, contents.max_shard_bytes);
  nlohmann::json index = {{"metadata", {{"total_size", int64_t{0}}}},
                          {"weight_map", nlohmann::json::object()}};
  int64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name =
        shards.size() == 1 ? kWhole
                           : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    add_weights(name_in(inner, name), shards[i].tensors);
    for (const auto& item : shards[i].tensors) index["weight_map"][item.key()] = name;
    total += shards[i].bytes;
  }
  if (shards.size() > 1) {
    index["metadata"]["total_size"] = total;
    add_json(name_in(inner, kIndex), index);
  }
  for (const auto& [name, path] : contents.copied) add_copy(name_in(inner, name), path);
  for (const auto& [name, text] : contents.texts) add_text(name_in(inner, name), text);
  for (const std::string& name : contents.removed) removed_.insert(name_in(inner, name));
  add_json(name_in(inner, kConfig), contents.config);
}

void FolderWriter::commit() {
  for (auto& [name, file] : files_) {
    // An earlier model.safetensors would be found before the index of the shards.
    if (name == files_.back().name) remove_others();
    io::in_file((folder_ / name).string(), [&file = file] { file.commit(); });
    committed_ = true;
  }
}

// A file that is gone already, or that cannot be removed, is no reason to fail: the new weights are
// found before shards, and all of them are there.
void FolderWriter::remove_others() {
  std::error_code ignored;
  for (const std::string& inner : models_) {
    for (const auto& entry : fs::directory_iterator(folder_ / inner, ignored)) {
      const std::string name = entry.path().filename().string();
      if (is_saved_weights(name)) removed_.insert(name_in(inner, name));
    }
  }
  for (const std::string& name : removed_) {
    if (!has(name)) fs::remove(folder_ / name, ignored);
  }
}

bool FolderWriter::has(const std::string& name) const {
  return std::any_of(files_.begin(), files_.end(),
                     [&](const File& file) { return file.name == name; });
}

void write_pretrained(const char* caller, const std::string& folder,
                      const PretrainedFolder& contents) {
  io::in_context(caller, folder, [&] {
    FolderWriter written(folder);
    written.add_model("", contents);
    written.commit();
  });
}

}  // namespace posenc
