#include "io/manifest_reader.h"

#include <string>

#include "io/tensor_bytes.h"
#include "posenc/io/error.h"

namespace posenc::io {
namespace {

// Views of one storage and expanded tensors may together be this much larger than the files.
constexpr uint64_t kMostTimes = 16;
constexpr uint64_t kAlwaysFine = uint64_t{256} << 20;

}  // namespace

const InputFile& ManifestReader::file(std::size_t number) {
  if (!file_ || number_ != number) {
    file_.reset();  // never two at a time
    file_ = std::make_unique<InputFile>(manifest_.files.at(number));
    number_ = number;
  }
  return *file_;
}

uint64_t ManifestReader::total_bytes() {
  uint64_t size = 0, total = 0;
  for (std::size_t i = 0; i < manifest_.files.size(); ++i) size += file(i).size();
  const uint64_t most = kAlwaysFine + kMostTimes * size;
  for (const auto& tensor : manifest_.tensors) {
    const uint64_t bytes = contiguous_bytes(tensor);
    if (bytes > most || total > most - bytes) {
      throw WeightsError(WeightsErrorCode::LimitExceeded,
                         "brings the tensors to more than " + std::to_string(most) +
                             " bytes, by views of one storage, in " + std::to_string(size) +
                             " bytes of files")
          .in_tensor(tensor.name)
          .in_file(manifest_.files.at(manifest_.storages.at(tensor.storage).file));
    }
    total += bytes;
  }
  return total;
}

void ManifestReader::stream(const ManifestTensor& tensor,
                            const std::function<void(const char* data, std::size_t count)>& take) {
  const auto& storage = manifest_.storages.at(tensor.storage);
  stream_tensor(file(storage.file), storage, tensor, take);
}

}  // namespace posenc::io
