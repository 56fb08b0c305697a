// The index of a sharded checkpoint, without its shards.
#include <string>

#include "fuzz/check.h"
#include "weights/manifest/shards.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using posenc::testing::promise;
  try {
    const auto index = posenc::io::parse_index({reinterpret_cast<const char*>(data), size});
    for (const auto& shard : index.shards) {
      promise(!shard.tensors.empty(), "a shard has tensors");
      promise(shard.file.find_first_of("/\\") == std::string::npos, "bare file names");
      promise(shard.file != ".." && shard.file != "." && !shard.file.empty(), "names of files");
    }
  } catch (const posenc::WeightsError&) {
  }
  return 0;
}
