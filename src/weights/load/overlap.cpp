#include "weights/load/overlap.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "core/torch_internals/lazy.h"
#include "core/torch_internals/shortcut.h"
#include "core/torch_internals/version.h"
#include "weights/common/tensor.h"

namespace posenc::io {
namespace {

using torch_internals::extent_of;

struct TargetExtent {
  const void* lazy;  // the storage of a lazy clone, otherwise null
  uintptr_t begin, end;
  std::size_t target;
};

TargetExtent extent_of_target(const at::Tensor& tensor, std::size_t target) {
  const auto [begin, end] = extent_of(tensor);
  const bool is_lazy = torch_internals::is_lazy_clone(tensor);
  return {is_lazy ? tensor.storage().unsafeGetStorageImpl() : nullptr, begin, end, target};
}

// Copies of the memory of some targets, in the same order of addresses.
class Copies {
 public:
  Copies(const std::vector<Target>& targets, const std::vector<std::size_t>& members)
      : targets_(targets) {
    constexpr uintptr_t kAlignment = 64;
    uintptr_t end = 0;
    begin_ = std::numeric_limits<uintptr_t>::max();
    for (const std::size_t i : members) {
      const auto extent = extent_of(targets[i].tensor);
      begin_ = std::min(begin_, extent.begin / kAlignment * kAlignment);
      end = std::max(end, extent.end);
    }
    bytes_ = at::empty({static_cast<int64_t>(end - begin_)}, at::TensorOptions(at::kByte));
  }

  // The copy of the target's memory, with the same strides and bits.
  at::Tensor operator[](std::size_t target) const {
    const at::Tensor& like = targets_[target].tensor;
    auto* const data =
        static_cast<char*>(bytes_.mutable_data_ptr()) + (extent_of(like).begin - begin_);
    const auto keep = [bytes = bytes_](void*) {};
    const at::Tensor copy = at::from_blob(data, like.sizes(), like.strides(), keep,
                                          at::TensorOptions(like.scalar_type()));
    return torch_internals::with_sign_bits(copy, like.is_conj(), like.is_neg());
  }

 private:
  const std::vector<Target>& targets_;
  uintptr_t begin_ = 0;
  at::Tensor bytes_;
};

// The first of `members` that lacks its value after all have been written, one after the other.
std::optional<std::size_t> first_changed(const std::vector<Target>& targets,
                                         const std::vector<std::size_t>& members,
                                         const NewValue& value) {
  const at::NoGradGuard no_grad;
  const Copies copies(targets, members);
  for (const std::size_t i : members) copies[i].copy_(value(i));
  for (const std::size_t i : members) {
    const at::Tensor alone = Copies(targets, {i})[i];
    if (!same_bytes(copies[i], alone.copy_(value(i)))) return i;
  }
  return std::nullopt;
}

}  // namespace

Sharing sharing_of(const std::vector<Target>& targets) {
  std::vector<TargetExtent> extents;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const at::Tensor& tensor = targets[i].tensor;
    if (is_dense_with_data(tensor) && tensor.numel() > 0)
      extents.push_back(extent_of_target(tensor, i));
  }
  std::sort(extents.begin(), extents.end(), [](const TargetExtent& a, const TargetExtent& b) {
    return std::tie(a.lazy, a.begin, a.target) < std::tie(b.lazy, b.begin, b.target);
  });
  Sharing sharing(targets.size());
  std::vector<TargetExtent> open;  // those that may reach as far as the next one
  for (const TargetExtent& extent : extents) {
    std::erase_if(open, [&](const TargetExtent& other) {
      return other.lazy != extent.lazy || other.end <= extent.begin;
    });
    for (const TargetExtent& other : open) {
      sharing[extent.target].push_back(other.target);
      sharing[other.target].push_back(extent.target);
    }
    open.push_back(extent);
  }
  return sharing;
}

std::optional<std::pair<std::size_t, std::size_t>> find_conflict(
    const std::vector<Target>& targets, const std::vector<std::size_t>& members,
    const NewValue& value) {
  const auto changed = first_changed(targets, members, value);
  if (!changed) return std::nullopt;
  for (const std::size_t other : members) {
    const std::pair<std::size_t, std::size_t> pair = std::minmax(other, *changed);
    if (other != *changed &&
        torch_internals::share_memory(targets[other].tensor, targets[*changed].tensor) &&
        first_changed(targets, {pair.first, pair.second}, value)) {
      return pair;
    }
  }
  return std::nullopt;
}

SharedWrite::SharedWrite(const std::vector<Target>& targets,
                         const std::vector<std::size_t>& others) {
  for (const std::size_t i : others) {
    const at::Tensor& tensor = targets[i].tensor;
    if (!tensor.is_inference()) versions_.emplace_back(tensor, torch_internals::version_of(tensor));
  }
}

SharedWrite::~SharedWrite() {
  for (const auto& [tensor, version] : versions_) {
    if (torch_internals::version_of(tensor) == version)
      tensor.unsafeGetTensorImpl()->bump_version();
  }
}

}  // namespace posenc::io
