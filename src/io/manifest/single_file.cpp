#include "io/manifest/single_file.h"

#include <string>

#include "io/manifest/shards.h"
#include "io/manifest/unknown_format.h"
#include "io/safetensors/reader.h"
#include "io/torch/readers.h"
#include "io/torch/zip/index.h"
#include "posenc/io/error.h"

namespace posenc::io {

Manifest read_single_file(const InputFile& file) {
  if (looks_like_zip(file)) return read_archive(file);
  if (looks_like_torch_legacy(file)) return read_torch_legacy(file);
  if (looks_like_safetensors(file)) return read_safetensors(file);
  if (looks_like_json(file)) {
    throw WeightsError(WeightsErrorCode::Shard,
                       "is an index of shards, where a single file is expected");
  }
  refuse_unknown_format(file);
}

bool looks_like_shard_index(const InputFile& file) {
  return looks_like_json(file) && !looks_like_safetensors(file);
}

}  // namespace posenc::io
