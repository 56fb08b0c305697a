#include "io/load/memory_source.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "io/base/dtype.h"
#include "io/base/targets.h"
#include "io/base/writable.h"
#include "torch_internals/shortcut.h"

namespace posenc::io {

namespace {

using torch_internals::extent_of;
using torch_internals::MemoryExtent;

// The memory of tensors, by addresses: another storage may have been made over it.
class Memory {
 public:
  explicit Memory(const StateDict& tensors) {
    for (const auto& item : tensors) {
      if (is_dense_with_data(item.value())) extents_.push_back(extent_of(item.value()));
    }
    std::sort(extents_.begin(), extents_.end(),
              [](const auto& a, const auto& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < extents_.size(); ++i) {  // reaching as far as any before
      extents_[i].end = std::max(extents_[i].end, extents_[i - 1].end);
    }
  }
  bool overlaps(const at::Tensor& tensor) const {
    const MemoryExtent extent = extent_of(tensor);
    const auto after = std::lower_bound(extents_.begin(), extents_.end(), extent.end,
                                        [](const auto& a, uintptr_t end) { return a.begin < end; });
    return after != extents_.begin() && std::prev(after)->end > extent.begin;
  }

 private:
  std::vector<MemoryExtent> extents_;
};

}  // namespace

MemorySource::MemorySource(const StateDict& tensors, const torch::nn::Module& module) {
  const Memory memory(state_dict(module));
  for (const auto& item : tensors) {
    const at::Tensor& tensor = item.value();
    Entry entry;
    entry.name = item.key();
    if (!tensor.defined()) {
      entry.fault = "must be a defined tensor";
    } else if (!is_dense_with_data(tensor)) {
      entry.fault = "must be dense and hold data. Got a sparse, quantised, nested or meta tensor";
    } else if (!can_resolve(tensor)) {
      entry.fault = "must not have the negative bit, which LibTorch cannot resolve for " +
                    type_name(tensor.scalar_type());
    } else {
      entry.dtype = tensor.scalar_type();
      entry.sizes = tensor.sizes().vec();
    }
    const bool is_own = entry.fault.empty() && memory.overlaps(tensor);
    tensors_.push_back(is_own ? tensor.detach().clone() : tensor);
    entries_.push_back(std::move(entry));
  }
}

at::Tensor MemorySource::tensor(std::size_t index) const { return tensors_[index].detach(); }

at::Tensor MemorySource::head(std::size_t index, int64_t axis, int64_t count) const {
  return tensor(index).narrow(axis, 0, count);
}

void MemorySource::copy_to(std::size_t index, const at::Tensor& target) const {
  target.copy_(tensors_[index]);
}

bool MemorySource::equal(std::size_t a, std::size_t b) const {
  if (same_memory(tensors_[a], tensors_[b])) return true;
  const auto x = contiguous_on_cpu(tensors_[a]), y = contiguous_on_cpu(tensors_[b]);
  return x.scalar_type() == y.scalar_type() && x.sizes() == y.sizes() &&
         (x.nbytes() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0);
}

}  // namespace posenc::io
