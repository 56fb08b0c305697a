#include "io/load/colliding.h"

#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "posenc/io/error.h"

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

}  // namespace posenc::io
