#include "models/pretrained/write_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <list>
#include <set>
#include <system_error>

#include "io/base/file.h"
#include "io/safetensors/writer.h"
#include "posenc/io/error.h"

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

std::string json_text(const nlohmann::json& value) { return value.dump(2) + "\n"; }

// A folder of which no file takes its place before commit(). Without it, a new folder is removed.
class FolderWriter {
 public:
  explicit FolderWriter(const std::string& folder) : folder_(folder) {
    std::error_code unknown;
    for (fs::path path = folder_; !path.empty() && !fs::exists(path, unknown);
         path = path.parent_path())
      made_.push_back(path);
    make_folder(folder);
  }
  ~FolderWriter() {
    files_.clear();
    if (committed_) return;
    std::error_code ignored;
    for (const fs::path& path : made_) fs::remove(path, ignored);
  }
  FolderWriter(const FolderWriter&) = delete;
  FolderWriter& operator=(const FolderWriter&) = delete;

  // Has `write` write the file of this name.
  template <typename Write>
  void add(const std::string& name, const Write& write) {
    const std::string path = (folder_ / name).string();
    io::in_file(path, [&] {
      files_.emplace_back(name, path);
      write(files_.back().file);
    });
  }
  void add_text(const std::string& name, const std::string& text) {
    add(name, [&](io::AtomicFile& file) { file.write(text.data(), text.size()); });
  }

  // In the order in which they were added; `last` is done before the last of them.
  template <typename Last>
  void commit(const Last& last) {
    for (auto& [name, file] : files_) {
      if (name == files_.back().name) last();
      io::in_file((folder_ / name).string(), [&file = file] { file.commit(); });
      committed_ = true;
    }
  }

  bool has(const std::string& name) const {
    return std::any_of(files_.begin(), files_.end(),
                       [&](const File& file) { return file.name == name; });
  }

 private:
  struct File {
    File(std::string name_, const std::string& path) : name(std::move(name_)), file(path) {}
    std::string name;
    io::AtomicFile file;
  };

  fs::path folder_;
  std::vector<fs::path> made_;  // innermost first
  std::list<File> files_;
  bool committed_ = false;
};

// A file that is gone already, or that cannot be removed, is no reason to fail: the new weights are
// found before shards, and all of them are there.
void remove_others(const std::string& folder, const FolderWriter& written,
                   const std::vector<std::string>& removed) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool is_named = std::find(removed.begin(), removed.end(), name) != removed.end();
    if ((is_named || is_saved_weights(name)) && !written.has(name))
      fs::remove(entry.path(), ignored);
  }
}

void add_weights(FolderWriter& folder, const std::vector<Shard>& shards) {
  nlohmann::json index = {{"metadata", {{"total_size", int64_t{0}}}},
                          {"weight_map", nlohmann::json::object()}};
  int64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name =
        shards.size() == 1 ? kWhole
                           : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    folder.add(name, [&](io::AtomicFile& file) {
      io::write_safetensors(file, shards[i].tensors, {{"format", "pt"}});
    });
    for (const auto& item : shards[i].tensors) index["weight_map"][item.key()] = name;
    total += shards[i].bytes;
  }
  if (shards.size() == 1) return;
  index["metadata"]["total_size"] = total;
  folder.add_text(kIndex, json_text(index));
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
  const std::string text = json_text(value);
  io::in_file(path, [&] {
    io::AtomicFile file(path);
    file.write(text.data(), text.size());
    file.commit();
  });
}

void write_pretrained(const char* caller, const std::string& folder,
                      const PretrainedFolder& contents) {
  io::in_context(caller, folder, [&] {
    FolderWriter written(folder);
    add_weights(written, shards_of(contents.tensors, contents.max_shard_bytes));
    for (const std::string& path : contents.copied) {
      const std::string text = io::read_text(path, std::numeric_limits<uint64_t>::max());
      written.add_text(fs::path(path).filename().string(), text);
    }
    for (const auto& [name, text] : contents.texts) written.add_text(name, text);
    written.add_text(kConfig, json_text(contents.config));
    // An earlier model.safetensors would be found before the index of the shards.
    written.commit([&] { remove_others(folder, written, contents.removed); });
  });
}

}  // namespace posenc
