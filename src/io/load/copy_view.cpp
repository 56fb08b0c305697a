#include "io/load/copy_view.h"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>

#include "io/base/dtype.h"
#include "torch_internals/shortcut.h"

namespace posenc::io {
namespace {

constexpr int64_t kBlock = int64_t{8} << 20;  // bytes that a thread reads per call

bool same_layout(const FileView& view, const at::Tensor& target) {
  if (view.is_contiguous() && target.is_contiguous()) return true;
  return target.strides() == at::IntArrayRef(view.strides) && target.is_non_overlapping_and_dense();
}

void copy_windows(const FileView& view, const at::Tensor& target) {
  read_windows(view, [&](const Window& window) {
    const auto& [file, begin, dtype, sizes, strides, conj, negative] = window.part;
    at::Tensor into = target;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == view.sizes[i]) continue;
      into = into.narrow(static_cast<int64_t>(i), window.starts[i], sizes[i]);
    }
    into.copy_(at::from_blob(window.data, sizes, strides, at::TensorOptions(scalar_type(dtype))));
  });
}

}  // namespace

void copy_view(const FileView& view, const at::Tensor& target) {
  if (view.numel() == 0) return;
  const bool straight = target.is_cpu() && target.scalar_type() == scalar_type(view.dtype) &&
                        !view.conj && !view.negative && !target.is_conj() && !target.is_neg() &&
                        same_layout(view, target);
  if (!straight) return copy_windows(view, target);
  torch_internals::note_write(target);
  // In parallel, because copying is slow if the file's bytes are not aligned like the memory.
  auto* bytes = static_cast<char*>(target.mutable_data_ptr());
  at::parallel_for(0, static_cast<int64_t>(target.nbytes()), kBlock,
                   [&](int64_t begin, int64_t end) {
                     view.file->read(view.begin + static_cast<uint64_t>(begin), bytes + begin,
                                     static_cast<std::size_t>(end - begin));
                   });
}

}  // namespace posenc::io
