#include "weights/load/shard_folder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "posenc/weights/error.h"
#include "weights/common/json.h"
#include "weights/common/tensor.h"
#include "weights/load/mismatch.h"
#include "weights/load/source.h"

namespace posenc::io {
namespace {

namespace fs = std::filesystem;
using Code = WeightsErrorCode;
using Sizes = std::vector<int64_t>;

constexpr const char* kInfo = "DCP_SHARDING_INFO";

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".safetensors") files.push_back(entry->path().string());
  }
  if (error) throw WeightsError(Code::Io, "cannot be listed: " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

WeightsError bad_info(const std::string& tensor) {
  return WeightsError(Code::Corrupt, std::string("must have saved_offsets in the metadata ") +
                                         kInfo + ", one integer for each dimension")
      .in_tensor(tensor);
}

// `{"name": {"saved_offsets": [0, 0]}}`; empty for a file without it, which holds whole tensors.
nlohmann::json sharding_info(const Manifest& manifest) {
  const auto found = manifest.metadata.find(kInfo);
  if (found == manifest.metadata.end()) return {};
  auto info = json_tree<nlohmann::json>(found->second, "its sharding information");
  if (!info.is_object())
    throw WeightsError(Code::Corrupt, std::string("must have an object as ") + kInfo);
  return info;
}

Sizes begins_of(const nlohmann::json& info, const ManifestTensor& tensor) {
  Sizes begins(tensor.sizes.size(), 0);
  if (info.is_null()) return begins;
  const auto entry = info.find(tensor.name);
  if (entry == info.end() || !entry->is_object()) throw bad_info(tensor.name);
  const auto offsets = entry->find("saved_offsets");
  if (offsets == entry->end() || !offsets->is_array() || offsets->size() != begins.size()) {
    throw bad_info(tensor.name);
  }
  for (std::size_t i = 0; i < begins.size(); ++i) {
    constexpr uint64_t kMost = uint64_t{1} << 48;  // with any size, the sum does not overflow
    const auto& offset = (*offsets)[i];
    if (!offset.is_number_unsigned() || offset.get<uint64_t>() > kMost ||
        tensor.sizes[i] > static_cast<int64_t>(kMost)) {
      throw bad_info(tensor.name);
    }
    begins[i] = offset.get<int64_t>();
  }
  return begins;
}

// The product as a real number, which cannot overflow: exact for everything that a disk holds.
long double volume(const Sizes& sizes) {
  long double all = 1;
  for (const int64_t size : sizes) all *= static_cast<long double>(size);
  return all;
}

}  // namespace

ShardFolder::ShardFolder(const std::string& folder) {
  bool has_info = false;
  for (const auto& path : files_in(folder)) {
    files_.push_back(std::make_unique<OpenWeights>(path));
    keep_open(*files_.back());
    has_info = has_info || files_.back()->manifest.metadata.count(kInfo) != 0;
  }
  if (!has_info) {
    throw WeightsError(Code::NotRegular,
                       "is a folder, without shards that torch.distributed.checkpoint "
                       "wrote as safetensors");
  }
  for (const auto& file : files_) {
    in_file(file->manifest.files.front(), [&] { add_parts(*file); });
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) check_cover(i);
}

void ShardFolder::add_parts(const OpenWeights& file) {
  for (const auto& [name, text, kind] : file.manifest.opaque) {
    const auto [found, is_new] = index_.emplace(name, entries_.size());
    if (is_new) {
      entries_.push_back({.name = name});
      parts_.emplace_back();
    }
    Entry& entry = entries_[found->second];
    entry.fault = "must be a dense tensor. Got " + text;
    entry.is_tensor = false;
    entry.is_unreadable = kind == EntryKind::Unreadable;
  }
  const auto info = sharding_info(file.manifest);
  for (const auto& tensor : file.manifest.tensors) {
    const Sizes begins = begins_of(info, tensor);
    const auto [found, is_new] = index_.emplace(tensor.name, entries_.size());
    if (is_new) {
      entries_.push_back({tensor.name, scalar_type(tensor.dtype), tensor.sizes});
      parts_.emplace_back();
    }
    Entry& entry = entries_[found->second];
    if (!entry.fault.empty()) continue;
    if (entry.dtype != scalar_type(tensor.dtype) || entry.sizes.size() != begins.size()) {
      throw WeightsError(Code::Shard,
                         "has another dtype or number of dimensions than in other shards")
          .in_tensor(tensor.name);
    }
    for (std::size_t i = 0; i < begins.size(); ++i) {
      entry.sizes[i] = std::max(entry.sizes[i], begins[i] + tensor.sizes[i]);
    }
    if (volume(tensor.sizes) > 0) parts_[found->second].push_back({&file, &tensor, begins});
  }
}

// Boxes that do not overlap and have the volume of the whole are the whole.
void ShardFolder::check_cover(std::size_t index) {
  auto& parts = parts_[index];
  const Entry& entry = entries_[index];
  if (!entry.fault.empty()) return;
  const std::size_t axes = entry.sizes.size();
  const auto begin = [](const Part& part) { return part.begins.empty() ? 0 : part.begins[0]; };
  std::sort(parts.begin(), parts.end(),
            [&](const Part& a, const Part& b) { return begin(a) < begin(b); });
  const auto overlap = [&](const Part& a, const Part& b, std::size_t axis) {
    return a.begins[axis] < b.begins[axis] + b.tensor->sizes[axis] &&
           b.begins[axis] < a.begins[axis] + a.tensor->sizes[axis];
  };
  long double covered = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    covered += volume(parts[i].tensor->sizes);
    for (std::size_t j = i + 1; j < parts.size(); ++j) {
      if (axes > 0 && !overlap(parts[i], parts[j], 0)) break;
      std::size_t axis = 0;
      while (axis < axes && overlap(parts[i], parts[j], axis)) ++axis;
      if (axis < axes) continue;
      throw WeightsError(Code::Shard, "has shards that overlap",
                         "the folder may hold shards of two saves")
          .in_tensor(entry.name);
    }
  }
  if (covered == volume(entry.sizes)) return;
  throw WeightsError(
      Code::Shard, "lacks some of its shards: they are not all of shape " + shape_text(entry.sizes),
      "copy the shards of all processes into the folder")
      .in_tensor(entry.name);
}

void ShardFolder::keep_open(const OpenWeights& file) const {
  if (std::find(open_.begin(), open_.end(), &file) != open_.end()) return;
  if (open_.size() == OpenWeights::kMostOpen) {
    open_.front()->close();
    open_.pop_front();
  }
  open_.push_back(&file);
}

FileView ShardFolder::view(const Part& part) const {
  keep_open(*part.file);
  return part.file->view(*part.tensor);
}

void ShardFolder::copy_part(const Part& part, const at::Tensor& target) const {
  try {
    FileView view = this->view(part);
    at::Tensor into = target;
    for (std::size_t axis = 0; axis < part.begins.size(); ++axis) {
      const auto dim = static_cast<int64_t>(axis);
      const int64_t first = part.begins[axis];
      const int64_t count = std::min(part.tensor->sizes[axis], target.size(dim) - first);
      if (count <= 0) return;
      view = view.narrow(axis, 0, count);
      into = into.narrow(dim, first, count);
    }
    copy_view(view, into);
  } catch (const WeightsError& error) {
    throw error.in_tensor(part.tensor->name).in_file(part.file->manifest.files.front());
  }
}

at::Tensor ShardFolder::corner(std::size_t index, const Sizes& sizes) const {
  refuse_unreadable_entry(entries_[index]);
  const at::NoGradGuard no_grad;
  auto result = at::empty(sizes, at::TensorOptions(entries_[index].dtype));
  copy_to(index, result);
  return result;
}

at::Tensor ShardFolder::tensor(std::size_t index) const {
  return corner(index, entries_[index].sizes);
}

at::Tensor ShardFolder::head(std::size_t index, int64_t axis, int64_t count) const {
  Sizes sizes = entries_[index].sizes;
  sizes[static_cast<std::size_t>(axis)] = count;
  return corner(index, sizes);
}

void ShardFolder::copy_to(std::size_t index, const at::Tensor& target) const {
  for (const Part& part : parts_[index]) copy_part(part, target);
}

bool ShardFolder::equal(std::size_t a, std::size_t b) const {
  return same_bytes(tensor(a), tensor(b));
}

void ShardFolder::check_unchanged() const {
  for (const auto& file : files_) file->check_unchanged();
}

void ShardFolder::check_values(std::size_t index) const {
  for (const Part& part : parts_[index]) check_bools(view(part));
}

}  // namespace posenc::io
