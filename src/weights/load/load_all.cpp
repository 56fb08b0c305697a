#include "weights/load/load_all.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/torch_internals/lazy.h"
#include "posenc/weights/error.h"
#include "weights/common/tensor.h"
#include "weights/common/tensor_list.h"

namespace posenc::io {
namespace {

constexpr std::size_t kFew = 5'000;  // walking over so few names costs next to nothing

// The bucket counts that a table goes through as it grows to `count` names, from kFew buckets on.
std::vector<std::size_t> bucket_counts(std::size_t count) {
  std::vector<std::size_t> counts;
  std::unordered_set<std::size_t> table;
  for (std::size_t i = 0; i < count; ++i) {
    table.insert(i);
    const std::size_t now = table.bucket_count();
    if (now >= kFew && (counts.empty() || counts.back() != now)) counts.push_back(now);
  }
  return counts;
}

}  // namespace

void refuse_colliding(std::size_t count,
                      const std::function<const std::string&(std::size_t index)>& name) {
  if (count < kFew) return;
  std::vector<std::size_t> hashes(count);
  for (std::size_t i = 0; i < count; ++i) hashes[i] = std::hash<std::string>()(name(i));
  for (const std::size_t buckets : bucket_counts(count)) {
    std::vector<uint32_t> load(buckets, 0);
    const std::size_t present = std::min(count, buckets);  // with more names the table grows
    uint64_t walked = 0;
    for (std::size_t i = 0; i < present; ++i) walked += load[hashes[i] % buckets]++;
    constexpr uint64_t kMost = 32;  // an even spread has less than one per name
    if (walked <= kMost * present) continue;
    throw WeightsError(WeightsErrorCode::LimitExceeded,
                       "has names that were chosen to be slow to look up (std::hash puts them "
                       "together)");
  }
}

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
