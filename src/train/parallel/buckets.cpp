#include "train/parallel/buckets.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

namespace posenc::parallel {
namespace {

constexpr int64_t kAlignment = 64;  // bytes, a cache line: kernels start at aligned addresses

// A bucket before its memory is allocated.
struct Plan {
  at::TensorOptions options;
  std::vector<std::size_t> parameters;
  std::vector<int64_t> offsets;
  int64_t size = 0;  // elements

  int64_t element() const { return static_cast<int64_t>(options.dtype().itemsize()); }
  int64_t bytes() const { return size * element(); }
  int64_t append(int64_t elements) {
    const int64_t offset = size, unit = std::max<int64_t>(kAlignment / element(), 1);
    size += (elements + unit - 1) / unit * unit;
    return offset;
  }
};

at::TensorOptions options_of(const at::Tensor& parameter) {
  return at::TensorOptions(parameter.scalar_type()).device(parameter.device());
}

bool are_alike(const at::TensorOptions& a, const at::TensorOptions& b) {
  return a.dtype() == b.dtype() && a.device() == b.device();
}

std::vector<Plan> plan_buckets(const std::vector<at::Tensor>& parameters,
                               const std::vector<bool>& placed, int64_t bucket_bytes) {
  std::vector<Plan> plans;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    if (!placed[i]) continue;
    const at::TensorOptions options = options_of(parameters[i]);
    auto open = std::find_if(plans.rbegin(), plans.rend(),
                             [&](const Plan& plan) { return are_alike(plan.options, options); });
    const int64_t bytes = parameters[i].numel() * static_cast<int64_t>(options.dtype().itemsize());
    if (open == plans.rend() || open->bytes() + bytes > bucket_bytes) {
      plans.push_back({options, {}, {}, 0});
      open = plans.rbegin();
    }
    open->parameters.push_back(i);
    open->offsets.push_back(open->append(parameters[i].numel()));
  }
  return plans;
}

// The bucket with the tail, at the end.
Plan& last_bucket(std::vector<Plan>& plans, const std::vector<at::Tensor>& parameters) {
  const auto found = std::find_if(plans.rbegin(), plans.rend(), [](const Plan& plan) {
    return plan.options.dtype() == at::kFloat;
  });
  if (found == plans.rend()) {
    const at::Device device = parameters.empty() ? at::kCPU : parameters.front().device();
    plans.push_back({at::TensorOptions(at::kFloat).device(device), {}, {}, 0});
  } else {
    std::rotate(found.base() - 1, found.base(), plans.end());
  }
  return plans.back();
}

at::Tensor handle(const at::Tensor& memory, int64_t offset, at::IntArrayRef sizes,
                  at::IntArrayRef strides) {
  return at::empty({0}, memory.options()).set_(memory.storage(), offset, sizes, strides);
}

// As AccumulateGrad lays gradients out.
std::vector<int64_t> gradient_strides(const at::Tensor& parameter) {
  if (parameter.is_non_overlapping_and_dense()) return parameter.strides().vec();
  return at::empty(parameter.sizes(), at::TensorOptions(at::kMeta)).strides().vec();
}

}  // namespace

Buckets make_buckets(const std::vector<at::Tensor>& parameters, const std::vector<bool>& placed,
                     int64_t bucket_bytes, int64_t tail) {
  std::vector<Plan> plans = plan_buckets(parameters, placed, bucket_bytes);
  const int64_t tail_offset = last_bucket(plans, parameters).append(tail);
  Buckets buckets;
  buckets.bucket_of.assign(parameters.size(), Buckets::kNone);
  buckets.slots.resize(parameters.size());
  for (const Plan& plan : plans) {
    // Zeros, because the gaps between slots are summed too.
    const at::Tensor flat = at::zeros({plan.size}, plan.options);
    for (std::size_t k = 0; k < plan.parameters.size(); ++k) {
      const std::size_t i = plan.parameters[k];
      buckets.bucket_of[i] = buckets.all.size();
      buckets.slots[i] =
          handle(flat, plan.offsets[k], parameters[i].sizes(), gradient_strides(parameters[i]));
    }
    buckets.all.push_back({flat, plan.parameters});
  }
  buckets.tail = handle(buckets.all.back().flat, tail_offset, {tail}, {1});
  return buckets;
}

at::Tensor alias_of(const at::Tensor& slot) {
  return handle(slot, slot.storage_offset(), slot.sizes(), slot.strides());
}

bool is_alias_of(const at::Tensor& gradient, const at::Tensor& slot) {
  return gradient.is_alias_of(slot) && gradient.storage_offset() == slot.storage_offset() &&
         gradient.sizes() == slot.sizes() && gradient.strides() == slot.strides();
}

}  // namespace posenc::parallel
