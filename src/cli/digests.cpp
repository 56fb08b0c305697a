#include "cli/digests.h"

#include <map>
#include <tuple>
#include <utility>

#include "cli/sha256.h"
#include "weights/common/file_view.h"

namespace posenc::cli {

std::vector<std::string> digests(const io::OpenWeights& weights,
                                 const std::function<void(uint64_t bytes, uint64_t of)>& progress) {
  const auto bytes_of = [](const ManifestTensor& tensor) {
    return std::tie(tensor.storage, tensor.offset, tensor.dtype, tensor.sizes, tensor.strides,
                    tensor.conj, tensor.negative);
  };
  using Bytes = decltype(bytes_of(std::declval<const ManifestTensor&>()));
  const uint64_t total = weights.total_bytes();
  uint64_t done = 0;
  std::map<Bytes, std::string> known;
  std::vector<std::string> result;
  for (const auto& tensor : weights.manifest.tensors) {
    const auto [found, is_new] = known.try_emplace(bytes_of(tensor));
    if (is_new) {
      Sha256 hash;
      weights.stream(tensor, [&](const char* data, std::size_t count) {
        hash.update(data, count);
        progress(done += count, total);
      });
      found->second = hash.hex();
    } else {
      done += io::contiguous_bytes(tensor);
    }
    result.push_back(found->second);
  }
  weights.check_unchanged();
  return result;
}

}  // namespace posenc::cli
