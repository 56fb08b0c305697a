#include "positions/relative/spread.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace posenc::relative {
namespace {

constexpr int64_t kMostStored = int64_t{1} << 16;  // distances with a bucket of their own
constexpr std::size_t kMostOptions = 16;           // that are kept

// The buckets of the distances 0 ... max_distance on one side of a query; those of farther keys are
// the last one's. As ATen computes them, whose rounding decides some.
struct KnownBuckets {
  explicit KnownBuckets(const Buckets& index) {
    const at::Tensor distances = at::arange(index.max_distance + 1, at::kLong);
    const at::Tensor before = relative_index(-distances, index);
    const int64_t* of = before.const_data_ptr<int64_t>();
    buckets.assign(of, of + before.numel());
  }
  std::vector<int64_t> buckets;
};

std::shared_ptr<const KnownBuckets> known_buckets(const Buckets& index) {
  static std::mutex mutex;
  static std::vector<std::pair<Buckets, std::shared_ptr<const KnownBuckets>>> known;
  const std::lock_guard<std::mutex> lock(mutex);
  for (const auto& [options, buckets] : known) {
    if (options == index) return buckets;
  }
  auto made = std::make_shared<const KnownBuckets>(index);
  if (known.size() >= kMostOptions) known.erase(known.begin());
  known.emplace_back(index, made);
  return made;
}

}  // namespace

at::Tensor rows_of_distances(int64_t first, int64_t count, const Index& index) {
  const auto* buckets = std::get_if<Buckets>(&index);
  if (buckets == nullptr || buckets->max_distance > kMostStored)
    return relative_index(at::arange(first, first + count, at::kLong), index).contiguous();
  const auto known = known_buckets(*buckets);
  const at::Tensor rows = at::empty({count}, at::kLong);
  int64_t* row = rows.data_ptr<int64_t>();
  const int64_t last = buckets->max_distance;
  const int64_t after = buckets->bidirectional ? buckets->num_buckets / 2 : 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t distance = first + i;
    const int64_t apart = distance > 0 ? (buckets->bidirectional ? distance : 0) : -distance;
    row[i] = known->buckets[static_cast<std::size_t>(std::min(apart, last))] +
             (distance > 0 ? after : 0);
  }
  return rows;
}

}  // namespace posenc::relative
