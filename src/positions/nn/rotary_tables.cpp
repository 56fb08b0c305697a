#include "positions/nn/rotary_tables.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/shared_by_key.h"
#include "core/torch_internals/version.h"

namespace posenc {
namespace {

// A table doubles, but never by more rows than these: the rows before them are copied, and those
// that are never used cost memory.
constexpr int64_t kFewestNewRows = 64, kMostNewRows = 1024;

RotaryCosSin joined(const RotaryCosSin& first, const RotaryCosSin& next) {
  if (!first.cos.defined()) return next;
  return {torch::cat({first.cos, next.cos}), torch::cat({first.sin, next.sin})};
}

int64_t longest_of(const RotaryLengths& lengths) {
  return lengths.grown.defined() ? lengths.longest : 0;
}

template <typename Number>
void append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

}  // namespace

std::shared_ptr<RotaryTables> RotaryTables::shared(const Key& key) {
  static SharedByKey<Key, RotaryTables> all;
  return all.of(key);
}

std::vector<RotaryTables::Table>::iterator RotaryTables::find(torch::Dtype dtype,
                                                              torch::Device device,
                                                              int64_t length) {
  return std::find_if(tables_.begin(), tables_.end(), [&](const Table& t) {
    return t.dtype == dtype && t.device == device && t.length == length;
  });
}

RotaryCosSin RotaryTables::rows(int64_t count, int64_t most, torch::Dtype dtype,
                                torch::Device device, int64_t length, const Compute& compute) {
  {
    const std::shared_lock<std::shared_mutex> reading(lock_);
    const auto table = find(dtype, device, length);
    if (table != tables_.end() && table->size() >= count) return table->rows;
  }
  const std::unique_lock<std::shared_mutex> writing(lock_);
  auto table = find(dtype, device, length);
  const int64_t present = table == tables_.end() ? 0 : table->size();
  if (present >= count) return table->rows;  // another thread was here first
  // A later backward may need these tensors, even if the first forward runs inside InferenceMode.
  const c10::InferenceMode off(false);
  const torch::NoGradGuard no_grad;
  const int64_t more = std::clamp(present, kFewestNewRows, kMostNewRows);
  const int64_t total = std::max(count, std::min(present + more, most));
  const RotaryCosSin next = compute(present, total);
  if (table == tables_.end()) table = tables_.insert(table, Table{dtype, device, length, {}});
  table->rows = joined(table->rows, next);
  return table->rows;
}

RotaryTablesInUse::Seen::Seen(const torch::Tensor& tensor) {
  if (!tensor.defined()) return;
  dtype = tensor.scalar_type();
  on_cpu = tensor.is_cpu();
  if (on_cpu) {
    const torch::Tensor dense = tensor.contiguous();
    bytes.assign(static_cast<const char*>(dense.const_data_ptr()), dense.nbytes());
    return;
  }
  data = tensor.const_data_ptr();
  version = torch_internals::version_of(tensor);
}

bool RotaryTablesInUse::Seen::is(const torch::Tensor& tensor) const {
  if (!tensor.defined() || !dtype) return tensor.defined() == dtype.has_value();
  if (*dtype != tensor.scalar_type() || on_cpu != tensor.is_cpu()) return false;
  if (!on_cpu)
    return data == tensor.const_data_ptr() && version == torch_internals::version_of(tensor);
  const torch::Tensor dense = tensor.contiguous();
  return dense.nbytes() == bytes.size() &&
         std::memcmp(dense.const_data_ptr(), bytes.data(), bytes.size()) == 0;
}

bool RotaryTablesInUse::fits(const RotarySource& source) const {
  return tables_ && attention_scaling_ == source.attention_scaling &&
         longest_ == longest_of(source.lengths) && inv_freq_.is(source.inv_freq) &&
         alpha_.is(source.alpha) && grown_.is(source.lengths.grown) &&
         tables_->options() == source.options;
}

void RotaryTablesInUse::see(const RotarySource& source) {
  inv_freq_ = Seen(source.inv_freq);
  alpha_ = Seen(source.alpha);
  grown_ = Seen(source.lengths.grown);
  attention_scaling_ = source.attention_scaling;
  longest_ = longest_of(source.lengths);
}

std::shared_ptr<RotaryTables> RotaryTablesInUse::of(const RotarySource& source) {
  {
    const std::shared_lock<std::shared_mutex> reading(lock_);
    if (fits(source)) return tables_;
  }
  const std::unique_lock<std::shared_mutex> writing(lock_);
  if (fits(source)) return tables_;  // another thread was here first
  see(source);
  RotaryTables::Key key{source.options, ""};
  append(key.rest, attention_scaling_);
  append(key.rest, longest_);
  bool known = true;
  for (const Seen* seen : {&inv_freq_, &alpha_, &grown_}) {
    key.rest += seen->dtype ? torch::toString(*seen->dtype) : "none";
    append(key.rest, seen->bytes.size());
    key.rest += seen->bytes;
    known = known && seen->on_cpu;
  }
  tables_ = known ? RotaryTables::shared(key) : std::make_shared<RotaryTables>(std::move(key));
  return tables_;
}

void RotaryTablesInUse::adopt(std::shared_ptr<RotaryTables> tables, const RotarySource& source) {
  const std::unique_lock<std::shared_mutex> writing(lock_);
  see(source);
  tables_ = std::move(tables);
}

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
