#include "weights/common/file_view.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "posenc/weights/error.h"
#include "weights/common/resolve_sign.h"

namespace posenc::io {
namespace {

constexpr int64_t kWindow = int64_t{8} << 20;  // bytes of the file read at once
constexpr int64_t kNear = int64_t{16} << 10;   // gaps in spans of this size are read, not skipped
constexpr int64_t kDense = 8;                  // as are those in spans of this many times the need

class WindowReader {
 public:
  WindowReader(const FileView& view, const std::function<void(const Window&)>& take)
      : part_(view), starts_(view.sizes.size(), 0), take_(take) {}

  // Reads one window if it is small or mostly needed; otherwise splits it in two along the axis
  // with the longest stride.
  void run() {
    const int64_t span = part_.extent() * part_.item();
    int64_t needed = part_.item();
    std::size_t longest = 0;
    for (std::size_t i = 0; i < part_.sizes.size(); ++i) {
      if (part_.strides[i] > 0) needed *= part_.sizes[i];
      const bool is_better = part_.sizes[longest] == 1 || part_.strides[i] > part_.strides[longest];
      if (part_.sizes[i] > 1 && is_better) longest = i;
    }
    if (span <= kWindow && (span <= kNear || span / kDense <= needed)) {
      return read(static_cast<std::size_t>(span));
    }
    const int64_t size = part_.sizes[longest], half = size / 2;
    const uint64_t begin = part_.begin;
    part_.sizes[longest] = half;
    run();
    part_.sizes[longest] = size - half;
    part_.begin += static_cast<uint64_t>(half * part_.strides[longest] * part_.item());
    starts_[longest] += half;
    run();
    starts_[longest] -= half;
    part_.begin = begin;
    part_.sizes[longest] = size;
  }

 private:
  void read(std::size_t bytes) {
    buffer_.resize(std::max(buffer_.size(), bytes));
    part_.file->read(part_.begin, buffer_.data(), bytes);
    resolve_sign(part_, buffer_.data(), bytes);
    take_({part_, starts_, buffer_.data()});
  }

  FileView part_;
  std::vector<int64_t> starts_;
  const std::function<void(const Window&)>& take_;
  std::vector<char> buffer_;
};

// One dimension of a copy; strides in bytes.
struct Axis {
  int64_t size, from, to;
};

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

// The view with the fewest axes: without those of one element, and with neighbours that are one
// run merged.
FileView merged(const FileView& view) {
  FileView result = view;
  result.sizes.clear();
  result.strides.clear();
  for (std::size_t i = 0; i < view.sizes.size(); ++i) {
    const int64_t size = view.sizes[i], stride = view.strides[i];
    if (size == 1) continue;  // its stride may be anything
    if (!result.sizes.empty() && result.strides.back() == stride * size) {
      result.sizes.back() *= size;
      result.strides.back() = stride;
    } else {
      result.sizes.push_back(size);
      result.strides.push_back(stride);
    }
  }
  return result;
}

}  // namespace

bool FileView::is_contiguous() const {
  int64_t expected = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

int64_t FileView::numel() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

int64_t FileView::extent() const {
  int64_t last = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    last += (sizes[i] - 1) * strides[i];
  }
  return last + 1;
}

FileView FileView::narrow(std::size_t axis, int64_t start, int64_t count) const {
  FileView part = *this;
  part.begin += static_cast<uint64_t>(start * strides[axis] * item());
  part.sizes[axis] = count;
  return part;
}

FileView view_of(std::shared_ptr<const InputFile> file, uint64_t storage_begin,
                 const ManifestTensor& tensor) {
  // Unsigned, because an empty tensor, of which nothing is read, may have any offset.
  const uint64_t offset =
      static_cast<uint64_t>(tensor.offset) * static_cast<uint64_t>(item_size(tensor.dtype));
  return {.file = std::move(file),
          .begin = storage_begin + offset,
          .dtype = tensor.dtype,
          .sizes = tensor.sizes,
          .strides = tensor.strides,
          .conj = tensor.conj,
          .negative = tensor.negative};
}

void read_windows(const FileView& view, const std::function<void(const Window&)>& take) {
  WindowReader(view, take).run();
}

void read_contiguous(const FileView& view, char* out) {
  if (view.numel() == 0) return;
  const FileView whole = merged(view);
  const int64_t item = whole.item();
  if (whole.is_contiguous()) {
    const auto bytes = static_cast<std::size_t>(whole.numel() * item);
    whole.file->read(whole.begin, out, bytes);
    return resolve_sign(whole, out, bytes);
  }
  std::vector<Axis> axes(whole.sizes.size());
  int64_t to = item;
  for (std::size_t i = axes.size(); i-- > 0; to *= whole.sizes[i]) {
    axes[i] = {0, whole.strides[i] * item, to};
  }
  read_windows(whole, [&](const Window& window) {
    char* at = out;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      axes[i].size = window.part.sizes[i];
      at += window.starts[i] * axes[i].to;
    }
    copy_axes(window.data, at, axes.data(), axes.data() + axes.size(), item);
  });
}

bool equal_views(const FileView& a, const FileView& b) {
  if (a.dtype != b.dtype || a.sizes != b.sizes) return false;
  if (a.numel() == 0) return true;
  const auto total = static_cast<std::size_t>(a.numel() * a.item());
  const bool plain =
      a.is_contiguous() && b.is_contiguous() && a.conj == b.conj && a.negative == b.negative;
  if (!plain) {
    std::vector<char> x(total), y(total);
    read_contiguous(a, x.data());
    read_contiguous(b, y.data());
    return x == y;
  }
  if (a.file == b.file && a.begin == b.begin) return true;
  for (std::size_t at = 0; at < total; at += kWindow) {
    const auto count = std::min<std::size_t>(kWindow, total - at);
    if (a.file->read(a.begin + at, count) != b.file->read(b.begin + at, count)) return false;
  }
  return true;
}

void check_bools(const FileView& view) {
  if (view.dtype != ManifestDtype::Bool) return;
  const auto extent = static_cast<uint64_t>(view.extent());
  for (uint64_t at = 0; at < extent; at += kWindow) {
    const auto count = static_cast<std::size_t>(std::min<uint64_t>(kWindow, extent - at));
    const std::string bytes = view.file->read(view.begin + at, count);
    const auto bad = std::find_if(bytes.begin(), bytes.end(),
                                  [](char byte) { return static_cast<unsigned char>(byte) > 1; });
    if (bad == bytes.end()) continue;
    throw WeightsError(WeightsErrorCode::Corrupt,
                       "must have bytes 0 or 1, as it is of bools. Got " +
                           std::to_string(static_cast<unsigned char>(*bad)) + " at byte " +
                           std::to_string(at + static_cast<uint64_t>(bad - bytes.begin())));
  }
}

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
