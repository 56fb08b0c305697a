#include "io/read/single_file.h"

#include <string>

#include "io/read/foreign.h"
#include "io/read/index.h"
#include "io/read/safetensors.h"
#include "io/read/torch/torch_files.h"
#include "io/read/zip/index.h"
#include "posenc/io/error.h"

namespace posenc::io {

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

}  // namespace posenc::io
