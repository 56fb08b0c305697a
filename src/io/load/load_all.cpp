#include "io/load/load_all.h"

#include <ATen/ops/empty.h>

#include <unordered_map>

#include "io/base/dtype.h"
#include "io/base/unreadable.h"
#include "io/load/colliding.h"
#include "torch_internals/lazy.h"

namespace posenc::io {

StateDict all_tensors(const OpenWeights& weights) {
  const auto& tensors = weights.manifest.tensors;
  refuse_unreadable(weights.manifest);
  refuse_colliding(tensors.size(),
                   [&](std::size_t i) -> const std::string& { return tensors[i].name; });
  StateDict result;
  std::unordered_map<std::size_t, at::Tensor> storages;  // as bytes
  for (const auto& tensor : tensors) {
    try {
      const FileView view = weights.view(tensor);
      check_bools(view);
      auto& bytes = storages[tensor.storage];
      if (!bytes.defined()) {
        const auto& storage = weights.manifest.storages[tensor.storage];
        bytes = at::empty({static_cast<int64_t>(storage.bytes)}, at::TensorOptions(at::kByte));
        view.file->read(storage.offset, bytes.mutable_data_ptr(), storage.bytes);
      }
      auto whole = at::empty({0}, at::TensorOptions(scalar_type(view.dtype)));
      whole.set_(bytes.storage(), tensor.offset, view.sizes, view.strides);
      result.insert(tensor.name, torch_internals::with_sign_bits(whole, view.conj, view.negative));
    } catch (const WeightsError& error) {
      throw error.in_tensor(tensor.name).in_file(weights.path_of(tensor));
    }
  }
  weights.check_unchanged();
  return result;
}

}  // namespace posenc::io
