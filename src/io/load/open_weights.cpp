#include "io/load/open_weights.h"

#include <sys/stat.h>

#include <tuple>
#include <utility>

#include "io/read/read_manifest.h"

namespace posenc::io {
namespace {

constexpr int kAttempts = 5;

// Which file stands under a name, and in which state: a file that was written since differs.
using Stamp = std::tuple<dev_t, ino_t, off_t, time_t, long>;

std::vector<Stamp> stamps_of(const std::vector<std::string>& paths) {
  std::vector<Stamp> stamps;
  for (const auto& path : paths) {
    struct stat status {};
    ::stat(path.c_str(), &status);  // where it fails, opening the file will say why
    stamps.emplace_back(status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                        status.st_mtim.tv_nsec);
  }
  return stamps;
}

// Nobody holds the shards open between their index and the reading, so they are looked at again.
OpenWeights open_shards(const std::string& index) {
  std::vector<std::string> paths;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto before = stamps_of(paths);
    OpenWeights weights{read_shards(InputFile(index)), {}};
    if (weights.manifest.files != paths) {
      paths = weights.manifest.files;
      continue;
    }
    for (const auto& path : paths) weights.files.push_back(std::make_unique<InputFile>(path));
    if (stamps_of(paths) == before) return weights;
  }
  throw WeightsError(WeightsErrorCode::Io, "changes while it is read",
                     "load it when whoever writes it has finished");
}

}  // namespace

OpenWeights open_weights(const std::string& path) {
  try {
    auto file = std::make_unique<InputFile>(path);
    if (looks_like_shard_index(*file)) return open_shards(path);
    OpenWeights weights{read_single_file(*file), {}};
    weights.files.push_back(std::move(file));
    return weights;
  } catch (const WeightsError& error) {
    throw error.in_file(path);
  }
}

}  // namespace posenc::io
