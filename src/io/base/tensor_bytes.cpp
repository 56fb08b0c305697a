#include "io/base/tensor_bytes.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "posenc/io/error.h"

namespace posenc::io {
namespace {

constexpr int64_t kPiece = int64_t{8} << 20;  // bytes of output at a time

// Calls `take` for parts of the view in order, each of at most kPiece or one element.
void for_each_piece(const FileView& view, const std::function<void(const FileView&)>& take) {
  const int64_t bytes = view.numel() * view.item();
  std::size_t axis = 0;  // the outermost that can be cut
  while (axis < view.sizes.size() && view.sizes[axis] == 1) ++axis;
  if (bytes <= kPiece || axis == view.sizes.size()) return take(view);
  const int64_t size = view.sizes[axis], step = bytes / size;
  const int64_t most = std::max<int64_t>(1, kPiece / step);
  for (int64_t at = 0; at < size; at += most) {
    for_each_piece(view.narrow(axis, at, std::min(most, size - at)), take);
  }
}

}  // namespace

uint64_t contiguous_bytes(const ManifestTensor& tensor) {
  uint64_t bytes = static_cast<uint64_t>(item_size(tensor.dtype));
  for (const int64_t size : tensor.sizes) {
    if (size == 0) return 0;
  }
  for (const int64_t size : tensor.sizes) {
    if (bytes >
        static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / static_cast<uint64_t>(size)) {
      throw WeightsError(WeightsErrorCode::LimitExceeded, "has more elements than memory can have")
          .in_tensor(tensor.name);
    }
    bytes *= static_cast<uint64_t>(size);
  }
  return bytes;
}

void stream_tensor(const FileView& view, const std::string& name,
                   const std::function<void(const char* data, std::size_t count)>& take) {
  if (view.numel() == 0) return;
  std::vector<char> buffer;
  try {
    for_each_piece(view, [&](const FileView& piece) {
      const auto count = static_cast<std::size_t>(piece.numel() * piece.item());
      buffer.resize(std::max(buffer.size(), count));
      read_contiguous(piece, buffer.data());
      take(buffer.data(), count);
    });
  } catch (const WeightsError& error) {
    throw error.in_tensor(name);
  }
}

}  // namespace posenc::io
