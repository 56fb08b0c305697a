#include "inference/freeze/stale_check.h"

#include <torch/nn/modules/batchnorm.h>

#include <cstring>
#include <map>
#include <set>

#include "core/torch_internals/version.h"
#include "posenc/positions/nn/token_and_position_embedding.h"
#include "posenc/transformer/output_projection.h"

namespace posenc::inference {
namespace {

// The tables that the model itself extends for longer sequences. A frozen model has its own.
std::set<const c10::TensorImpl*> growing_tables(const torch::nn::Module& source) {
  std::set<const c10::TensorImpl*> tables;
  for (const auto& module : source.modules(/*include_self=*/false)) {
    const auto* const embedding = module->as<TokenAndPositionEmbeddingImpl>();
    if (embedding != nullptr &&
        embedding->options.position_ids() == embeddings::PositionIds::FromIds)
      tables.insert(embedding->position_encoding->pe.unsafeGetTensorImpl());
  }
  return tables;
}

// Statistics that a forward in training writes without another version of the tensor.
std::set<const c10::TensorImpl*> statistics_of(const torch::nn::Module& source) {
  std::set<const c10::TensorImpl*> statistics;
  for (const auto& module : source.modules(/*include_self=*/false)) {
    const auto* const norm = module->as<torch::nn::BatchNorm1dImpl>();
    if (norm == nullptr) continue;
    statistics.insert(norm->running_mean.unsafeGetTensorImpl());
    statistics.insert(norm->running_var.unsafeGetTensorImpl());
  }
  return statistics;
}

std::string below(const std::string& parent, const std::string& name) {
  return parent.empty() ? name : parent + "." + name;
}

[[noreturn]] void refuse(const std::string& what) {
  TORCH_CHECK(false, "[freeze] the model must not change once it is frozen; freeze it again. Got ",
              what);
}

}  // namespace

// What is known of the whole model.
struct StaleCheck::Source {
  Source(const torch::nn::Module& source, CopyOptions copy_options)
      : copy(copy_options), growing(growing_tables(source)), statistics(statistics_of(source)) {}

  CopyOptions copy;
  std::set<const c10::TensorImpl*> growing, statistics;
};

// A module that is registered twice is two parts.
void StaleCheck::add_parts(const torch::nn::Module& module, const std::string& name,
                           const Source& source) {
  parts_.push_back({name, &module, nullptr});
  if (&module == checked_itself_) return;
  parts_.back().options = source.copy(module);
  add_tensors(module, name, source);
  for (const auto& child : module.named_children())
    add_parts(*child.value(), below(name, child.key()), source);
}

void StaleCheck::add_tensors(const torch::nn::Module& module, const std::string& name,
                             const Source& source) {
  const auto add = [&](const std::string& key, const torch::Tensor& tensor) {
    if (!tensor.defined()) return;
    const std::string whole = below(name, key);
    TORCH_CHECK_VALUE(tensor.is_cpu(), "[freeze] the model must be on the CPU: ", whole, ". Got ",
                      tensor.device());
    const c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
    entries_.push_back({whole, Weak(tensor.getIntrusivePtr()), tensor.const_data_ptr(),
                        torch_internals::version_of(tensor), static_cast<int64_t>(tensor.nbytes()),
                        !tensor.is_contiguous(), source.growing.count(impl) > 0,
                        source.statistics.count(impl) > 0 ? tensor.clone() : at::Tensor()});
  };
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    const torch::Tensor& tensor = item.value();
    TORCH_CHECK_TYPE(!tensor.defined() || tensor.scalar_type() == torch::kFloat,
                     "[freeze] the model must be float32: ", below(name, item.key()), ". Got ",
                     tensor.scalar_type());
    add(item.key(), tensor);
  }
  for (const auto& item : module.named_buffers(/*recurse=*/false)) {
    // No layer computes with integers: counters may be anything, and change. Rotary frequencies
    // are float64 where the model computes its angles in it (RoFormer).
    if (item.value().defined() && item.value().is_floating_point()) add(item.key(), item.value());
  }
}

// Compares a module and those below it with the parts from `part` on; returns the next part.
std::size_t StaleCheck::check_parts(const torch::nn::Module& module, std::size_t part) const {
  if (part == parts_.size() || parts_[part].module != &module) {
    refuse("modules that were added, removed or replaced");
  }
  const Part& own = parts_[part];
  std::string where;
  if (own.options && own.options->differs_from(module, where)) {
    refuse("other options of " + (own.name.empty() ? "the model" : own.name) +
           (where.empty() ? "" : ": " + where.substr(1)));
  }
  ++part;
  if (&module == checked_itself_) return part;
  for (const auto& child : module.children()) part = check_parts(*child, part);
  return part;
}

StaleCheck::StaleCheck(const torch::nn::Module& source, CopyOptions copy,
                       const torch::nn::Module* checked_itself)
    : source_(source.weak_from_this()), checked_itself_(checked_itself) {
  add_parts(source, "", Source(source, copy));
}

void StaleCheck::set_converted(const std::map<const c10::TensorImpl*, OwnBytes>& bytes) {
  for (Entry& entry : entries_) {
    const auto found = bytes.find(entry.tensor._unsafe_get_target());
    if (found == bytes.end()) continue;
    const OwnBytes& own = found->second;
    (own.is_beside ? entry.beside : entry.bytes) = own.bytes;
    entry.is_copied |= !own.is_beside;
  }
}

void StaleCheck::check() const {
  for (const Entry& entry : entries_) {
    const auto tensor = entry.tensor.lock();
    // A tensor freed with its module cannot have been changed; otherwise it has been replaced.
    const bool same =
        tensor.defined()
            ? (entry.may_grow || tensor->data() == entry.data) &&
                  torch_internals::version_of(*tensor) == entry.version &&
                  (!entry.copy.defined() ||
                   std::memcmp(entry.data, entry.copy.const_data_ptr(), entry.copy.nbytes()) == 0)
            : source_.expired();
    if (!same) refuse("other values in " + entry.name);
  }
  const auto source = source_.lock();
  if (!source) return;
  if (check_parts(*source, 0) != parts_.size()) {
    refuse("modules that were added, removed or replaced");
  }
}

void StaleCheck::release() {
  for (const Entry& entry : entries_) released_bytes_ += entry.bytes + entry.beside;
  entries_.clear();
  parts_.clear();
  source_.reset();
  checked_itself_ = nullptr;
}

bool StaleCheck::differs_from(const torch::nn::Module& other, std::string& where) const {
  if (parts_.empty()) return false;
  const auto of_other = other.named_modules();
  for (const Part& part : parts_) {
    where = part.name.empty() ? "the model" : part.name;
    const auto* const found = of_other.find(part.name);
    if (found == nullptr) return true;
    // What it compares is the identity of a weight, which the names of parameters tell.
    if ((*found)->as<OutputProjectionImpl>() != nullptr || !part.options) continue;
    std::string field;
    if (!part.options->differs_from(**found, field)) continue;
    where += field;
    return true;
  }
  return false;
}

FrozenBytes StaleCheck::bytes() const {
  FrozenBytes bytes = {0, released_bytes_};
  for (const Entry& entry : entries_) {
    const auto tensor = entry.tensor.lock();
    const bool shares = !entry.is_copied && tensor.defined() && tensor->data() == entry.data;
    (shares ? bytes.shared : bytes.own) += entry.bytes;
    bytes.own += entry.beside;
  }
  return bytes;
}

}  // namespace posenc::inference
