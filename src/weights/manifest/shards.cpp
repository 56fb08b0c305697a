#include "weights/manifest/shards.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "posenc/weights/error.h"
#include "weights/common/json.h"
#include "weights/common/keyed_hash.h"

namespace posenc::io {
namespace {

using Code = WeightsErrorCode;

constexpr uint64_t kLongestIndex = 100'000'000;  // as for a safetensors header
constexpr std::size_t kMostShards = 10'000;
constexpr std::size_t kLongestName = 255;  // of a file name

void check_file_name(const std::string& name) {
  const bool bare = !name.empty() && name != "." && name != ".." && name.size() <= kLongestName &&
                    name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
  if (!bare) {
    throw WeightsError(Code::Shard,
                       "must name its shards by bare file names. Got " + in_quotes(name));
  }
}

class IndexHandler : public JsonHandler {
 public:
  explicit IndexHandler(ShardIndex& index) : index_(index) {}

  void start_object() override {
    if (state_ != State::Start && state_ != State::Value) return other("an object");
    state_ = state_ == State::Start ? State::Top : State::Map;
  }

  bool key(std::string& name) override {
    if (state_ == State::Map) {
      if (!names_.insert(name).second) {
        throw WeightsError(Code::DuplicateKey, "occurs twice in weight_map").in_tensor(name);
      }
      tensor_ = std::move(name);
      return true;
    }
    if (name != "weight_map") return false;
    if (std::exchange(has_map_, true)) {
      throw WeightsError(Code::DuplicateKey, "has weight_map twice");
    }
    state_ = State::Value;
    return true;
  }

  void end_object() override { state_ = state_ == State::Map ? State::Top : State::End; }
  void start_array() override { other("an array"); }
  void end_array() override {}

  void string(std::string& file) override {
    if (state_ != State::Map) return other("a string");
    const auto [found, is_new] = numbers_.emplace(file, index_.shards.size());
    if (is_new) {
      check_file_name(file);
      if (index_.shards.size() == kMostShards) {
        throw WeightsError(Code::LimitExceeded,
                           "must have at most " + std::to_string(kMostShards) + " shards");
      }
      index_.shards.push_back({file, {}});
    }
    index_.shards[found->second].tensors.push_back(std::move(tensor_));
  }

  void number(uint64_t value) override { other(std::to_string(value)); }

  void other(const std::string& got) override {
    switch (state_) {
      case State::Map:
        throw WeightsError(Code::Corrupt, "must be mapped to a file name. Got " + got)
            .in_tensor(tensor_);
      case State::Value:
        throw WeightsError(Code::Corrupt, "must have an object as weight_map. Got " + got);
      default: throw WeightsError(Code::UnknownFormat, "must be a JSON object. Got " + got);
    }
  }

  bool has_map() const { return has_map_; }

 private:
  enum class State { Start, Top, Value, Map, End };

  ShardIndex& index_;
  State state_ = State::Start;
  bool has_map_ = false;
  std::string tensor_;
  NameSet names_;
  NameMap<std::size_t> numbers_;  // indices of the shards, by file name
};

WeightsError shard_error(const std::string& reason) {
  return {Code::Shard, reason, "save or download the checkpoint again, index and shards"};
}

Manifest read_beside(const std::filesystem::path& folder, const std::string& name,
                     const std::function<Manifest(const std::string& path)>& read_shard) {
  try {
    return read_shard((folder / name).string());
  } catch (const WeightsError& error) {
    if (error.code() != Code::NotFound) throw;
    throw shard_error("names shard " + in_quotes(name) + ", which is not beside it");
  }
}

// Compares the index's entries for a shard with the shard's tensors. `shard_of` has the shard of
// each tensor of the index; `unmapped` gets those of the tensors that the index lacks, which a
// publisher may have left out of it.
void check_shard(const ShardIndex::Shard& shard, const Manifest& manifest,
                 const NameViewMap<const ShardIndex::Shard*>& shard_of,
                 NameMap<const ShardIndex::Shard*>& unmapped) {
  NameViews held;
  for (const auto& tensor : manifest.tensors) held.insert(tensor.name);
  for (const auto& entry : manifest.opaque) held.insert(entry.name);
  for (const auto& name : shard.tensors) {
    if (held.count(name) == 0) {
      throw shard_error("is mapped to " + in_quotes(shard.file) + ", which lacks it")
          .in_tensor(name);
    }
  }
  for (const auto& tensor : manifest.tensors) {
    const auto mapped = shard_of.find(tensor.name);
    if (mapped == shard_of.end()) {
      const auto [other, is_new] = unmapped.emplace(tensor.name, &shard);
      if (is_new) continue;
      throw shard_error("is in shard " + in_quotes(shard.file) + " and in " +
                        in_quotes(other->second->file) + ", and the index has neither")
          .in_tensor(tensor.name);
    }
    if (mapped->second != &shard) {
      throw shard_error("is in shard " + in_quotes(shard.file) + ", where the index has none")
          .in_tensor(tensor.name);
    }
  }
}

// Appends a shard's manifest; its only file becomes the next file of the whole.
void append(Manifest& all, Manifest&& part) {
  const std::size_t file = all.files.size(), first = all.storages.size();
  for (auto& storage : part.storages) storage.file = file;
  for (auto& tensor : part.tensors) tensor.storage += first;
  const auto move_to = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  move_to(all.files, part.files);
  move_to(all.storages, part.storages);
  move_to(all.tensors, part.tensors);
  move_to(all.opaque, part.opaque);
  move_to(all.values, part.values);
  all.more_values += part.more_values;
  all.metadata.merge(part.metadata);
}

}  // namespace

bool looks_like_json(const InputFile& file) {
  const std::string text = file.read(0, std::min<uint64_t>(file.size(), 64));
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

ShardIndex parse_index(std::string_view json) {
  ShardIndex index;
  IndexHandler handler(index);
  io::parse_json(json, "an index", handler);
  if (!handler.has_map()) {
    throw WeightsError(Code::UnknownFormat,
                       "is JSON without a weight_map, so not the index of a sharded checkpoint");
  }
  return index;
}

Manifest read_index(const InputFile& file,
                    const std::function<Manifest(const std::string& path)>& read_shard) {
  if (file.size() > kLongestIndex) {
    throw WeightsError(Code::LimitExceeded, "must have at most " + std::to_string(kLongestIndex) +
                                                " bytes to be an index");
  }
  const ShardIndex index = parse_index(file.read(0, file.size()));
  // The folder of the path as given: in Hugging Face's cache the index is a link, and the shards
  // are next to the link, not to its target.
  const auto folder = std::filesystem::path(file.path()).parent_path();
  NameViewMap<const ShardIndex::Shard*> shard_of;
  for (const auto& shard : index.shards) {
    for (const auto& name : shard.tensors) shard_of.emplace(name, &shard);
  }
  NameMap<const ShardIndex::Shard*> unmapped;
  Manifest all;
  for (const auto& shard : index.shards) {
    Manifest part = read_beside(folder, shard.file, read_shard);
    if (all.files.empty()) all.format = part.format;
    if (part.format != all.format) {
      throw shard_error("has shards of different formats, " + std::string(format_name(all.format)) +
                        " and " + format_name(part.format));
    }
    check_shard(shard, part, shard_of, unmapped);
    append(all, std::move(part));
  }
  if (all.format == WeightsFormat::Safetensors) all.format = WeightsFormat::SafetensorsIndex;
  return all;
}

}  // namespace posenc::io
