#include "io/base/tensor_bytes.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "io/base/resolve_sign.h"
#include "posenc/io/error.h"

namespace posenc::io {
namespace {

constexpr int64_t kPiece = int64_t{8} << 20;   // bytes of output at a time
constexpr int64_t kWindow = int64_t{8} << 20;  // bytes of input read at once
constexpr int64_t kNear = int64_t{16} << 10;   // a span this small is read whole, to save calls
constexpr int64_t kDense = 8;  // so is a span of up to this many times what is needed

// One dimension of a copy. Strides are in bytes; the input's is 0 if the tensor is expanded.
struct Axis {
  int64_t size, from, to;
};

// The dimensions of a tensor with elements, outermost first, without those of size 1, and with
// adjacent ones merged if they form a single run.
std::vector<Axis> axes_of(const ManifestTensor& tensor) {
  const int64_t item = item_size(tensor.dtype);
  std::vector<Axis> reversed;
  int64_t to = item;
  for (std::size_t i = tensor.sizes.size(); i-- > 0;) {
    const int64_t size = tensor.sizes[i];
    if (size == 1) continue;  // its stride is irrelevant
    const int64_t from = tensor.strides[i] * item;
    if (!reversed.empty() && reversed.back().from * reversed.back().size == from) {
      reversed.back().size *= size;
    } else {
      reversed.push_back({size, from, to});
    }
    to *= size;
  }
  std::reverse(reversed.begin(), reversed.end());
  return reversed;
}

template <typename Item>
void copy_strided(const char* in, char* out, const Axis& axis) {
  for (int64_t i = 0; i < axis.size; ++i) {
    std::memcpy(out + i * axis.to, in + i * axis.from, sizeof(Item));
  }
}

struct Item16 {
  char bytes[16];
};

void copy_axes(const char* in, char* out, const Axis* axis, const Axis* end, int64_t item) {
  if (axis == end) {
    std::memcpy(out, in, static_cast<std::size_t>(item));
  } else if (axis + 1 < end) {
    for (int64_t i = 0; i < axis->size; ++i) {
      copy_axes(in + i * axis->from, out + i * axis->to, axis + 1, end, item);
    }
  } else if (axis->from == item && axis->to == item) {
    std::memcpy(out, in, static_cast<std::size_t>(axis->size * item));
  } else {
    switch (item) {
      case 1: return copy_strided<uint8_t>(in, out, *axis);
      case 2: return copy_strided<uint16_t>(in, out, *axis);
      case 4: return copy_strided<uint32_t>(in, out, *axis);
      case 8: return copy_strided<uint64_t>(in, out, *axis);
      default: return copy_strided<Item16>(in, out, *axis);
    }
  }
}

// Reads the elements of some axes, each to its place in the output.
class Gather {
 public:
  Gather(const InputFile& file, int64_t item) : file_(file), item_(item) {}

  // Reads a window of the file if that is small or mostly needed; otherwise recurses into two
  // halves, split along the longest stride.
  void run(std::vector<Axis>& axes, uint64_t offset, char* out) {
    int64_t span = item_, needed = item_;
    Axis* longest = nullptr;
    for (auto& axis : axes) {
      span += (axis.size - 1) * axis.from;
      if (axis.from > 0) needed *= axis.size;
      if (axis.size > 1 && (longest == nullptr || axis.from > longest->from)) longest = &axis;
    }
    if (axes.size() == 1 && longest != nullptr && longest->from == item_ && longest->to == item_) {
      return file_.read(offset, out, static_cast<std::size_t>(span));
    }
    if (span <= kWindow && (span <= kNear || span / kDense <= needed)) {
      window_.resize(std::max(window_.size(), static_cast<std::size_t>(span)));
      file_.read(offset, window_.data(), static_cast<std::size_t>(span));
      return copy_axes(window_.data(), out, axes.data(), axes.data() + axes.size(), item_);
    }
    const Axis whole = *longest;
    const int64_t half = whole.size / 2;
    longest->size = half;
    run(axes, offset, out);
    longest->size = whole.size - half;
    run(axes, offset + static_cast<uint64_t>(half * whole.from), out + half * whole.to);
    *longest = whole;
  }

 private:
  const InputFile& file_;
  int64_t item_;
  std::vector<char> window_;
};

// Calls `piece(offset, axes, bytes)` for parts of the output, in order, each of at most kPiece
// bytes.
template <typename Piece>
void for_each_piece(const std::vector<Axis>& axes, int64_t item, uint64_t offset, Piece&& piece) {
  // The axis to split: a single step along it is small enough.
  std::size_t cut = 0;
  while (cut + 1 < axes.size() && axes[cut].to > kPiece) ++cut;
  std::vector<Axis> part(axes.begin() + static_cast<std::ptrdiff_t>(cut), axes.end());
  if (part.empty()) return piece(offset, part, item);
  const Axis whole = part.front();
  const int64_t most = std::max<int64_t>(1, kPiece / whole.to);
  std::vector<int64_t> index(cut, 0);
  for (;;) {
    uint64_t start = offset;
    for (std::size_t i = 0; i < cut; ++i) start += static_cast<uint64_t>(index[i] * axes[i].from);
    for (int64_t at = 0; at < whole.size; at += most) {
      part.front().size = std::min(most, whole.size - at);
      piece(start + static_cast<uint64_t>(at * whole.from), part, part.front().size * whole.to);
    }
    std::size_t i = cut;
    while (i > 0 && ++index[i - 1] == axes[i - 1].size) index[--i] = 0;
    if (i == 0) return;
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

void stream_tensor(const InputFile& file, const ManifestStorage& storage,
                   const ManifestTensor& tensor,
                   const std::function<void(const char* data, std::size_t count)>& take) {
  if (contiguous_bytes(tensor) == 0) return;
  const int64_t item = item_size(tensor.dtype);
  const uint64_t offset = storage.offset + static_cast<uint64_t>(tensor.offset * item);
  Gather gather(file, item);
  std::vector<char> buffer;
  try {
    for_each_piece(axes_of(tensor), item, offset,
                   [&](uint64_t start, std::vector<Axis>& axes, int64_t bytes) {
                     const auto count = static_cast<std::size_t>(bytes);
                     buffer.resize(std::max(buffer.size(), count));
                     gather.run(axes, start, buffer.data());
                     resolve_sign(tensor, buffer.data(), count);
                     take(buffer.data(), count);
                   });
  } catch (const WeightsError& error) {
    throw error.in_tensor(tensor.name);
  }
}

}  // namespace posenc::io
