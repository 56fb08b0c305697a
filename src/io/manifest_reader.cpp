#include "io/manifest_reader.h"

#include "io/tensor_bytes.h"

namespace posenc::io {

uint64_t total_bytes(const Manifest& manifest) {
  uint64_t total = 0;
  for (const auto& tensor : manifest.tensors) total += contiguous_bytes(tensor);
  return total;
}

const InputFile& ManifestReader::file(std::size_t number) {
  if (!file_ || number_ != number) {
    file_.reset();  // never two at a time
    file_ = std::make_unique<InputFile>(manifest_.files.at(number));
    number_ = number;
  }
  return *file_;
}

void ManifestReader::stream(const ManifestTensor& tensor,
                            const std::function<void(const char* data, std::size_t count)>& take) {
  const auto& storage = manifest_.storages.at(tensor.storage);
  stream_tensor(file(storage.file), storage, tensor, take);
}

}  // namespace posenc::io
