#include "nn/rotary_grid_tables.h"

#include <algorithm>

#include "core/shared_by_key.h"

namespace posenc {

std::shared_ptr<RotaryGridTables> RotaryGridTables::shared(const Key& key) {
  static SharedByKey<Key, RotaryGridTables> all;
  return all.of(key);
}

// Whether the grid is kept. It is then moved to the end.
bool RotaryGridTables::is_last(const std::vector<int64_t>& sizes, torch::Dtype dtype,
                               torch::Device device) {
  const auto found = std::find_if(tables_.begin(), tables_.end(), [&](const Table& t) {
    return t.sizes == sizes && t.dtype == dtype && t.device == device;
  });
  if (found == tables_.end()) return false;
  std::rotate(found, found + 1, tables_.end());
  return true;
}

RotaryCosSin RotaryGridTables::find(const std::vector<int64_t>& sizes, torch::Dtype dtype,
                                    torch::Device device) {
  const std::lock_guard<std::mutex> lock(lock_);
  return is_last(sizes, dtype, device) ? tables_.back().rows : RotaryCosSin();
}

void RotaryGridTables::keep(Table table) {
  const std::lock_guard<std::mutex> lock(lock_);
  if (key_.most == 0 || is_last(table.sizes, table.dtype, table.device)) return;
  if (static_cast<int64_t>(tables_.size()) >= key_.most) tables_.erase(tables_.begin());
  tables_.push_back(std::move(table));
}

}  // namespace posenc
