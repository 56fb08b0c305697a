#include "weights/manifest/open_weights.h"

#include <utility>

#include "weights/common/file_view.h"
#include "weights/manifest/shards.h"
#include "weights/manifest/single_file.h"

namespace posenc::io {
namespace {

constexpr int kAttempts = 5;

WeightsError changed(const std::string& what) {
  return {WeightsErrorCode::Io, what, "load it again when it has been written completely"};
}

}  // namespace

OpenWeights::OpenWeights(const std::string& path) {
  in_file(path, [&] {
    auto file = std::make_shared<InputFile>(path);
    if (!looks_like_shard_index(*file)) {
      manifest = read_single_file(*file);
      stamps_.push_back(file->stamp());
      keep(0, std::move(file));
      return;
    }
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      if (read_shards(path)) return;
    }
    throw changed("changes while it is read");
  });
}

// Returns false if the index or a shard was replaced or written to before the last one was read:
// the shards may then be of two checkpoints.
bool OpenWeights::read_shards(const std::string& index) {
  stamps_.clear();
  files_.clear();
  open_.clear();
  const InputFile index_file(index);
  manifest = read_index(index_file, [&](const std::string& path) {
    auto file = std::make_shared<InputFile>(path);
    Manifest shard = in_file(path, [&] { return read_single_file(*file); });
    stamps_.push_back(file->stamp());
    keep(stamps_.size() - 1, std::move(file));
    return shard;
  });
  if (platform::stamp_of(index) != index_file.stamp()) return false;
  for (std::size_t i = 0; i < stamps_.size(); ++i) {
    if (platform::stamp_of(manifest.files[i]) != stamps_[i]) return false;
  }
  return true;
}

OpenWeights::File OpenWeights::file(std::size_t number) const {
  if (files_[number]) return files_[number];
  const std::string& path = manifest.files[number];
  auto file = std::make_shared<InputFile>(path);
  if (file->stamp() != stamps_[number]) {
    throw changed("has been replaced or written to since its tensors were listed").in_file(path);
  }
  keep(number, file);
  return file;
}

void OpenWeights::keep(std::size_t number, File file) const {
  if (open_.size() == kMostOpen) {
    check_unchanged(open_.front());
    files_[open_.front()].reset();
    open_.pop_front();
  }
  open_.push_back(number);
  files_.resize(stamps_.size());
  files_[number] = std::move(file);
}

void OpenWeights::check_unchanged(std::size_t number) const {
  if (files_[number]->is_unchanged()) return;
  throw changed("has been written to while it was read").in_file(files_[number]->path());
}

void OpenWeights::check_unchanged() const {
  for (const std::size_t number : open_) check_unchanged(number);
}

void OpenWeights::close() const {
  check_unchanged();
  files_.assign(files_.size(), nullptr);
  open_.clear();
}

uint64_t OpenWeights::total_bytes() const {
  uint64_t total = 0;
  for (const auto& tensor : manifest.tensors) total += contiguous_bytes(tensor);
  return total;
}

void OpenWeights::stream(
    const ManifestTensor& tensor,
    const std::function<void(const char* data, std::size_t count)>& take) const {
  stream_tensor(view(tensor), tensor.name, take);
}

}  // namespace posenc::io
