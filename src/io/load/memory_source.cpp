#include "io/load/memory_source.h"

#include <cstring>

#include "io/base/targets.h"
#include "io/base/writable.h"

namespace posenc::io {

MemorySource::MemorySource(const StateDict& tensors, const torch::nn::Module& module) {
  std::set<const void*> storages;
  for (const auto& item : state_dict(module)) {
    if (item.value().has_storage()) {
      storages.insert(item.value().storage().unsafeGetStorageImpl());
    }
  }
  for (const auto& item : tensors) {
    const at::Tensor& tensor = item.value();
    Entry entry;
    entry.name = item.key();
    if (!tensor.defined()) {
      entry.fault = "must be a defined tensor";
    } else if (!is_dense_with_data(tensor)) {
      entry.fault = "must be dense and hold data. Got a sparse, quantised, nested or meta tensor";
    } else {
      entry.dtype = tensor.scalar_type();
      entry.sizes = tensor.sizes().vec();
    }
    const bool own =
        entry.fault.empty() && storages.count(tensor.storage().unsafeGetStorageImpl()) != 0;
    tensors_.push_back(own ? tensor.detach().clone() : tensor);
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
