#include "nn/rotary_tables.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/shared_by_key.h"
#include "torch_internals/version.h"

namespace posenc {
namespace {

// A table doubles, but never by more rows than these: the rows before them are copied, and those
// that are never used cost memory.
constexpr int64_t kFewestNewRows = 64, kMostNewRows = 1024;

RotaryCosSin joined(const RotaryCosSin& first, const RotaryCosSin& next) {
  if (!first.cos.defined()) return next;
  return {torch::cat({first.cos, next.cos}), torch::cat({first.sin, next.sin})};
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
  const int64_t wanted = std::max(count, std::min(present + more, most));
  const RotaryCosSin next = compute(present, wanted);
  if (table == tables_.end()) table = tables_.insert(table, Table{dtype, device, length, {}});
  table->rows = joined(table->rows, next);
  return table->rows;
}

RotaryTablesInUse::Source::Source(const torch::Tensor& tensor) {
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

bool RotaryTablesInUse::Source::is(const torch::Tensor& tensor) const {
  if (!tensor.defined() || !dtype) return tensor.defined() == dtype.has_value();
  if (*dtype != tensor.scalar_type() || on_cpu != tensor.is_cpu()) return false;
  if (!on_cpu)
    return data == tensor.const_data_ptr() && version == torch_internals::version_of(tensor);
  const torch::Tensor dense = tensor.contiguous();
  return dense.nbytes() == bytes.size() &&
         std::memcmp(dense.const_data_ptr(), bytes.data(), bytes.size()) == 0;
}

bool RotaryTablesInUse::fits(const RotaryOptions& options, const torch::Tensor& inv_freq,
                             const torch::Tensor& alpha) const {
  return tables_ && inv_freq_.is(inv_freq) && alpha_.is(alpha) && tables_->options() == options;
}

std::shared_ptr<RotaryTables> RotaryTablesInUse::of(const RotaryOptions& options,
                                                    const torch::Tensor& inv_freq,
                                                    const torch::Tensor& alpha) {
  {
    const std::shared_lock<std::shared_mutex> reading(lock_);
    if (fits(options, inv_freq, alpha)) return tables_;
  }
  const std::unique_lock<std::shared_mutex> writing(lock_);
  if (fits(options, inv_freq, alpha)) return tables_;  // another thread was here first
  inv_freq_ = Source(inv_freq);
  alpha_ = Source(alpha);
  RotaryTables::Key key{options, ""};
  for (const Source* source : {&inv_freq_, &alpha_}) {
    key.frequencies += source->dtype ? torch::toString(*source->dtype) : "none";
    key.frequencies += source->bytes;
  }
  const bool known = inv_freq_.on_cpu && alpha_.on_cpu;
  tables_ = known ? RotaryTables::shared(key) : std::make_shared<RotaryTables>(std::move(key));
  return tables_;
}

void RotaryTablesInUse::adopt(std::shared_ptr<RotaryTables> tables, const torch::Tensor& inv_freq,
                              const torch::Tensor& alpha) {
  const std::unique_lock<std::shared_mutex> writing(lock_);
  inv_freq_ = Source(inv_freq);
  alpha_ = Source(alpha);
  tables_ = std::move(tables);
}

}  // namespace posenc
