#include "inference/attention/distance_keys.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "transformer/layers/transformer_xl_rows.h"

namespace posenc::inference {
namespace {

// Longer sequences than before are often longer by a little.
constexpr int64_t kReachStep = 64;

}  // namespace

void DistanceKeys::add(const at::Tensor& weight, int64_t heads, float scale) {
  // Each row has the same bits in tables of any length.
  layers_.push_back({Projection(weight, {}, kAlwaysNative), heads, scale});
}

std::shared_ptr<const DistanceKeys::Keys> DistanceKeys::up_to(int64_t reach) const {
  const std::lock_guard lock(mutex_);
  if (keys_ && keys_->reach >= reach) return keys_;
  auto keys = std::make_shared<Keys>();
  keys->reach = (reach + kReachStep - 1) / kReachStep * kReachStep;
  // Position i - j of a key at distance j - i.
  const at::Tensor table = transformer_xl_rows(options_, keys->reach, at::kFloat).contiguous();
  for (const Layer& layer : layers_) {
    const at::Tensor rows = at::empty({table.size(0), layer.projection.out()}, at::kFloat);
    layer.projection.run(table.const_data_ptr<float>(), table.size(0), rows.data_ptr<float>(),
                         RowRegime::Many);
    keys->layers.push_back(
        (rows * layer.scale).unflatten(1, {layer.heads, -1}).transpose(0, 1).contiguous());
  }
  keys_ = std::move(keys);
  return keys_;
}

}  // namespace posenc::inference
