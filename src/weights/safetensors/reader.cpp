#include "weights/safetensors/reader.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "posenc/weights/error.h"
#include "weights/common/keyed_hash.h"

namespace posenc::io {
namespace {

using Code = WeightsErrorCode;

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kShortestHeader = 2;  // {}

uint64_t length_at_front(const InputFile& file) {
  return little_endian<uint64_t>(file.read(0, kLengthBytes), 0);
}

// Sets the strides of a contiguous tensor, and checks its number of bytes against its shape. Zeros
// count as ones in the overflow check, as in LibTorch's strides.
void lay_out(ManifestTensor& tensor, uint64_t bytes) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  const int64_t item = item_size(tensor.dtype);
  int64_t stride = 1;
  bool empty = false;
  tensor.strides.resize(tensor.sizes.size());
  for (std::size_t i = tensor.sizes.size(); i-- > 0;) {
    tensor.strides[i] = stride;
    const int64_t size = std::max<int64_t>(1, tensor.sizes[i]);
    empty = empty || tensor.sizes[i] == 0;
    if (stride > kLargest / item / size) {
      throw WeightsError(Code::Corrupt, "has a shape whose product overflows")
          .in_tensor(tensor.name);
    }
    stride *= size;
  }
  const uint64_t expected = empty ? 0 : static_cast<uint64_t>(stride * item);
  if (expected != bytes) {
    throw WeightsError(Code::Corrupt, "needs " + std::to_string(expected) +
                                          " bytes for its shape and dtype. Got " +
                                          std::to_string(bytes) + " by data_offsets")
        .in_tensor(tensor.name);
  }
}

// The ranges have to cover the data exactly: no overlap, in which two tensors would share bytes,
// and no gap, in which something could hide.
void check_ranges(const Manifest& manifest, uint64_t data_size) {
  std::vector<std::size_t> order(manifest.tensors.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto& storages = manifest.storages;
  const auto before = [&](std::size_t a, std::size_t b) {
    return storages[a].offset != storages[b].offset ? storages[a].offset < storages[b].offset
                                                    : storages[a].bytes < storages[b].bytes;
  };
  if (!std::is_sorted(order.begin(), order.end(), before)) {
    std::sort(order.begin(), order.end(), before);
  }
  uint64_t covered = 0;
  for (const std::size_t i : order) {
    const auto& [file, offset, bytes] = storages[i];
    if (offset != covered) {
      throw WeightsError(Code::Corrupt, "must have data that begin at byte " +
                                            std::to_string(covered) + ". Got " +
                                            std::to_string(offset) +
                                            (offset < covered ? " (an overlap)" : " (a hole)"))
          .in_tensor(manifest.tensors[i].name);
    }
    covered = offset + bytes;
  }
  if (covered > data_size) {
    throw WeightsError(Code::Truncated,
                       "has " + std::to_string(data_size) + " bytes of data, and its header " +
                           "describes " + std::to_string(covered),
                       "copy or download it again");
  }
  if (covered < data_size) {
    throw WeightsError(Code::Corrupt, "must end where the tensors' data end. Got " +
                                          std::to_string(data_size - covered) + " trailing bytes");
  }
}

}  // namespace

bool looks_like_safetensors(const InputFile& file) {
  if (file.size() < kLengthBytes + kShortestHeader) return false;
  const uint64_t length = length_at_front(file);
  if (length < kShortestHeader || length > kLongestSafetensorsHeader) return false;
  // There may be leading spaces; a brace after more of them than this is left to the parser.
  const std::size_t shown = std::min<uint64_t>({length, file.size() - kLengthBytes, 64});
  const std::string text = file.read(kLengthBytes, shown);
  const auto first = text.find_first_not_of(" \t\r\n");
  return first == std::string::npos ? length <= file.size() - kLengthBytes : text[first] == '{';
}

Manifest read_safetensors(const InputFile& file) {
  if (file.size() < kLengthBytes + kShortestHeader) {
    throw WeightsError(
        Code::Truncated,
        "must have at least 10 bytes to be a safetensors file. Got " + std::to_string(file.size()));
  }
  const uint64_t length = length_at_front(file);
  if (length < kShortestHeader || length > kLongestSafetensorsHeader) {
    throw WeightsError(
        Code::Corrupt,
        "must have a safetensors header of 2 to 100000000 bytes. Got " + std::to_string(length));
  }
  if (length > file.size() - kLengthBytes) {
    throw WeightsError(Code::Truncated,
                       "has " + std::to_string(file.size() - kLengthBytes) +
                           " bytes after the length of its header, which is " +
                           std::to_string(length),
                       "copy or download it again");
  }
  Manifest manifest = parse_safetensors_json(file.read(kLengthBytes, length));
  const uint64_t data_offset = kLengthBytes + length;
  // Tensors of unknown dtype only count for their ranges.
  NameViews unreadable;
  for (const auto& entry : manifest.opaque) unreadable.insert(entry.name);
  const auto is_unreadable = [&](const ManifestTensor& tensor) {
    return !unreadable.empty() && unreadable.count(tensor.name) != 0;
  };
  for (auto& tensor : manifest.tensors) {
    if (!is_unreadable(tensor)) lay_out(tensor, manifest.storages[tensor.storage].bytes);
  }
  check_ranges(manifest, file.size() - data_offset);
  std::erase_if(manifest.tensors, is_unreadable);
  for (auto& storage : manifest.storages) storage.offset += data_offset;
  manifest.format = WeightsFormat::Safetensors;
  manifest.files = {file.path()};
  return manifest;
}

}  // namespace posenc::io
