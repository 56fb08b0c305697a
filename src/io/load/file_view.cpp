#include "io/load/file_view.h"

#include <ATen/Parallel.h>
#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "io/base/dtype.h"
#include "torch_internals/shortcut.h"

namespace posenc::io {
namespace {

constexpr int64_t kBlock = int64_t{8} << 20;  // bytes

std::size_t item_size(const FileView& view) { return c10::elementSize(view.type); }

// Copies a view in parts that fit into one buffer.
class BlockReader {
 public:
  void copy(const FileView& view, const at::Tensor& target) {
    const int64_t bytes = view.extent() * static_cast<int64_t>(item_size(view));
    if (bytes <= kBlock) {
      target.copy_(block(view, bytes));
      return;
    }
    // Split along the axis with the largest span, into parts as long as a block has room for.
    std::size_t axis = 0;
    for (std::size_t i = 1; i < view.sizes.size(); ++i) {
      if ((view.sizes[i] - 1) * view.strides[i] > (view.sizes[axis] - 1) * view.strides[axis]) {
        axis = i;
      }
    }
    const int64_t size = view.sizes[axis];
    const int64_t step = std::clamp<int64_t>(size / (bytes / kBlock + 1), 1, size - 1);
    for (int64_t start = 0; start < size; start += step) {
      const int64_t count = std::min(step, size - start);
      copy(view.narrow(axis, start, count),
           target.narrow(static_cast<int64_t>(axis), start, count));
    }
  }

 private:
  at::Tensor block(const FileView& view, int64_t bytes) {
    if (!buffer_.defined() || buffer_.numel() < bytes) {
      buffer_ = at::empty({bytes}, at::TensorOptions(at::kByte));
    }
    view.file->read(view.begin, buffer_.mutable_data_ptr(), static_cast<std::size_t>(bytes));
    auto tensor =
        buffer_.narrow(0, 0, bytes).view(view.type).as_strided(view.sizes, view.strides, 0);
    if (view.conj) tensor = at::_conj(tensor);
    if (view.negative) tensor = at::_neg_view(tensor);
    return tensor;
  }

  at::Tensor buffer_;
};

bool same_layout(const FileView& view, const at::Tensor& target) {
  if (view.is_contiguous() && target.is_contiguous()) return true;
  return target.strides() == at::IntArrayRef(view.strides) && target.is_non_overlapping_and_dense();
}

}  // namespace

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

bool FileView::is_contiguous() const {
  int64_t expected = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

FileView FileView::narrow(std::size_t axis, int64_t start, int64_t count) const {
  FileView part = *this;
  part.begin += static_cast<uint64_t>(start * strides[axis]) * item_size(*this);
  part.sizes[axis] = count;
  return part;
}

FileView view_of(const OpenWeights& weights, const ManifestTensor& tensor) {
  const auto type = scalar_type(tensor.dtype);
  return {weights.file_of(tensor),
          weights.start_of(tensor) + static_cast<uint64_t>(tensor.offset) * c10::elementSize(type),
          type,
          tensor.sizes,
          tensor.strides,
          tensor.conj,
          tensor.negative};
}

void copy_view(const FileView& view, const at::Tensor& target) {
  if (view.numel() == 0) return;
  const bool straight = target.is_cpu() && target.scalar_type() == view.type && !view.conj &&
                        !view.negative && !target.is_conj() && !target.is_neg() &&
                        same_layout(view, target);
  if (!straight) {
    BlockReader().copy(view, target);
    return;
  }
  torch_internals::note_write(target);
  // In parallel, as copying is slow if the file's bytes are aligned differently than the memory.
  auto* bytes = static_cast<char*>(target.mutable_data_ptr());
  at::parallel_for(0, static_cast<int64_t>(target.nbytes()), kBlock,
                   [&](int64_t begin, int64_t end) {
                     view.file->read(view.begin + static_cast<uint64_t>(begin), bytes + begin,
                                     static_cast<std::size_t>(end - begin));
                   });
}

bool equal_views(const FileView& a, const FileView& b) {
  if (a.type != b.type || a.sizes != b.sizes) return false;
  if (a.numel() == 0) return true;
  const bool plain =
      a.is_contiguous() && b.is_contiguous() && a.conj == b.conj && a.negative == b.negative;
  if (plain && a.file == b.file && a.begin == b.begin) return true;
  if (!plain) {
    const auto options = at::TensorOptions(a.type);
    const auto x = at::empty(a.sizes, options), y = at::empty(b.sizes, options);
    copy_view(a, x);
    copy_view(b, y);
    return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
  }
  const auto total = static_cast<uint64_t>(a.numel()) * item_size(a);
  for (uint64_t at = 0; at < total; at += kBlock) {
    const auto count = static_cast<std::size_t>(std::min<uint64_t>(kBlock, total - at));
    if (a.file->read(a.begin + at, count) != b.file->read(b.begin + at, count)) return false;
  }
  return true;
}

void check_bools(const FileView& view) {
  if (view.type != at::kBool) return;
  const auto extent = static_cast<uint64_t>(view.extent());
  for (uint64_t at = 0; at < extent; at += kBlock) {
    const auto count = static_cast<std::size_t>(std::min<uint64_t>(kBlock, extent - at));
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

}  // namespace posenc::io
