#include "io/read/read_manifest.h"

#include <string>

#include "io/read/context.h"
#include "io/read/foreign.h"
#include "io/read/index.h"
#include "io/read/safetensors.h"
#include "io/read/torch/torch_files.h"
#include "io/read/zip/index.h"
#include "posenc/io/error.h"

namespace posenc {
namespace io {
namespace {

Manifest read_shard(const std::string& path) {
  const InputFile file(path);
  try {
    return read_single_file(file);
  } catch (const WeightsError& error) {
    throw error.in_file(path);
  }
}

}  // namespace

Manifest read_single_file(const InputFile& file) {
  if (looks_like_zip(file)) return read_archive(file);
  if (looks_like_torch_legacy(file)) return read_torch_legacy(file);
  if (looks_like_safetensors(file)) return read_safetensors(file);
  if (looks_like_json(file)) {
    throw WeightsError(WeightsErrorCode::Shard, "is an index of shards where one file is due");
  }
  refuse_foreign(file);
}

bool looks_like_shard_index(const InputFile& file) {
  return looks_like_json(file) && !looks_like_safetensors(file);
}

Manifest read_shards(const InputFile& index) { return read_index(index, read_shard); }

}  // namespace io

Manifest read_manifest(const std::string& path) {
  return io::in_context("read_manifest", path, [&] {
    const io::InputFile file(path);
    return io::looks_like_shard_index(file) ? io::read_shards(file) : io::read_single_file(file);
  });
}

}  // namespace posenc
