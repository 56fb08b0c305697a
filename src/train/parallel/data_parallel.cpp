#include "posenc/train/data_parallel.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <torch/nn/module.h>
#include <torch/ordered_dict.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/torch_internals/post_accumulate_hook.h"
#include "train/parallel/collectives.h"
#include "train/parallel/gradient_exchange.h"
#include "train/parallel/model_text.h"

namespace posenc {
namespace {

constexpr const char* kCaller = "DataParallel";

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Each tensor once, also where several names refer to it, and none of those that are computed.
NamedTensors distinct(const torch::OrderedDict<std::string, at::Tensor>& named,
                      const parallel::ComputedTensors& computed = {}) {
  std::unordered_set<const at::TensorImpl*> seen;
  NamedTensors tensors;
  for (const auto& item : named) {
    const at::Tensor& tensor = item.value();
    if (!tensor.defined() || computed.count(tensor.unsafeGetTensorImpl()) > 0) continue;
    if (seen.insert(tensor.unsafeGetTensorImpl()).second) tensors.emplace_back(item.key(), tensor);
  }
  return tensors;
}

// The buffers of which rank 0 has a copy for all. A computed table has the same rows on every
// process, if not the same number of them.
NamedTensors learned_buffers(const torch::nn::Module& module) {
  return distinct(module.named_buffers(), parallel::computed_tensors(module));
}

using Histories = std::map<std::string, int>;
using History = parallel::GradientExchange::History;

std::string text_of(const Histories& histories) {
  std::string text;
  for (const auto& [name, history] : histories)
    text += c10::str("history ", name, ' ', history, '\n');
  return text;
}

void check_parameters(const NamedTensors& parameters) {
  for (const auto& [name, tensor] : parameters) {
    TORCH_CHECK_VALUE(tensor.layout() == at::kStrided && !tensor.is_meta(),
                      "[DataParallel] parameters must be dense tensors with data. Got ", name,
                      " of ", tensor.layout(), " on ", tensor.device());
    TORCH_CHECK_VALUE(!torch_internals::PostAccumulateHook::has_one(tensor),
                      "[DataParallel] parameters must have no post-accumulate hook, for which "
                      "autograd has a single place; end the other DataParallel first. Got one on ",
                      name);
  }
}

// Buffers are copied from rank 0 and written on the others.
void check_buffers(const torch::OrderedDict<std::string, at::Tensor>& buffers) {
  for (const auto& item : buffers) {
    const at::Tensor& tensor = item.value();
    TORCH_CHECK_VALUE(
        tensor.layout() == at::kStrided && !tensor.is_meta() && !tensor.is_quantized() &&
            !tensor.is_inference() && at::has_internal_overlap(tensor) != at::MemOverlap::Yes,
        "[DataParallel] buffers must be dense tensors with memory of their own that can be "
        "written: not quantised, expanded, or made in InferenceMode. Got ",
        item.key(), " of ", tensor.sizes(), ", strides ",
        tensor.layout() == at::kStrided ? c10::str(tensor.strides()) : c10::str(tensor.layout()));
  }
}

void broadcast_values(const RankGroup& group, const NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  if (group.size() == 1) return;
  for (const auto& [name, tensor] : tensors) {
    // A copy, so that strides may differ and autograd sees the write.
    const at::Tensor values =
        at::empty(tensor.sizes(), at::TensorOptions(tensor.scalar_type()).device(tensor.device()));
    if (group.rank() == 0) values.copy_(tensor);
    parallel::broadcast(group, values, /*root=*/0, kCaller);
    if (group.rank() != 0) at::Tensor(tensor).copy_(values);
  }
}

// The action of a parameter's hook. It is not a member of the class, because the type of a lambda
// in a member of a public class would be exported.
auto report_to(parallel::GradientExchange& exchange, const int& paused, std::size_t index) {
  return [&exchange, &paused, index] {
    paused == 0 ? exchange.ready(index) : exchange.accumulated(index);
  };
}

}  // namespace

class DataParallel::Impl {
 public:
  Impl(torch::nn::Module& module, RankGroup group, const DataParallelOptions& options,
       const Histories& histories)
      : module_(module), group_(std::move(group)) {
    const NamedTensors parameters = distinct(module.named_parameters());
    parallel::all_or_none(
        group_,
        [&] {
          check_positive(kCaller, "bucket_bytes", options.bucket_bytes());
          check_parameters(parameters);
          check_buffers(module.named_buffers());
        },
        kCaller);
    parallel::agree_on(group_,
                       parallel::model_text(module) +
                           c10::str("bucket_bytes ", options.bucket_bytes(), '\n') +
                           text_of(histories),
                       kCaller);
    broadcast_values(group_, parameters);
    broadcast_learned_buffers();
    if (group_.size() > 1) start_exchange(parameters, histories, options.bucket_bytes());
  }

  void finish(const at::Tensor& extra) {
    exchange_ ? exchange_->finish(extra) : parallel::GradientExchange::check_extra(extra, kCaller);
  }

  void broadcast_buffers() {
    parallel::all_or_none(group_, [&] { check_buffers(module_.named_buffers()); }, kCaller);
    parallel::agree_on(group_, parallel::buffers_text(module_), kCaller);
    broadcast_learned_buffers();
  }

  bool buffers_have_changed() { return versions_of(buffers_) != versions_; }

  Histories histories() const {
    Histories all;
    for (std::size_t i = 0; exchange_ && i < names_.size(); ++i)
      all[names_[i]] = exchange_->history(i).number();
    return all;
  }

  const RankGroup& group() const noexcept { return group_; }
  const std::shared_ptr<int>& paused() const noexcept { return paused_; }

 private:
  // The module is searched for buffers here only, and not in every step.
  void broadcast_learned_buffers() {
    buffers_ = learned_buffers(module_);
    broadcast_values(group_, buffers_);
    versions_ = versions_of(buffers_);
  }

  static std::vector<int64_t> versions_of(const NamedTensors& tensors) {
    std::vector<int64_t> versions;
    for (const auto& [name, tensor] : tensors) versions.push_back(tensor._version());
    return versions;
  }

  void start_exchange(const NamedTensors& parameters, const Histories& histories,
                      int64_t bucket_bytes) {
    std::vector<at::Tensor> tensors;
    std::vector<History> starts;
    for (const auto& [name, tensor] : parameters) {
      names_.push_back(name);
      tensors.push_back(tensor);
      const auto found = histories.find(name);
      starts.push_back(found == histories.end() ? History{tensor.requires_grad(), false}
                                                : History::from_number(found->second));
    }
    exchange_.emplace(tensors, starts, group_, bucket_bytes, kCaller);
    hooks_.reserve(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {  // also frozen ones, which may be unfrozen
      hooks_.emplace_back(tensors[i], report_to(*exchange_, *paused_, i));
    }
  }

  torch::nn::Module& module_;
  RankGroup group_;
  std::shared_ptr<int> paused_ = std::make_shared<int>(0);
  NamedTensors buffers_;  // that rank 0 has for all, and their versions when it last sent them
  std::vector<int64_t> versions_;
  std::vector<std::string> names_;  // of the exchange's parameters
  std::optional<parallel::GradientExchange> exchange_;
  std::vector<torch_internals::PostAccumulateHook> hooks_;  // end before what they call
};

DataParallel::DataParallel(const ModuleRef& module, RankGroup group,
                           const DataParallelOptions& options)
    : impl_(std::make_unique<Impl>(*module, std::move(group), options, Histories{})) {}

DataParallel::DataParallel(const ModuleRef& module, RankGroup group, const Histories& histories)
    : impl_(std::make_unique<Impl>(*module, std::move(group), DataParallelOptions(), histories)) {}

DataParallel::~DataParallel() = default;

void DataParallel::finish(const at::Tensor& extra) { impl_->finish(extra); }

DataParallelPause DataParallel::pause() { return DataParallelPause(impl_->paused()); }

void DataParallel::broadcast_buffers() { impl_->broadcast_buffers(); }

bool DataParallel::buffers_have_changed() { return impl_->buffers_have_changed(); }

DataParallel::Histories DataParallel::histories() const { return impl_->histories(); }

const RankGroup& DataParallel::group() const noexcept { return impl_->group(); }

DataParallelPause::DataParallelPause(std::shared_ptr<int> paused) : paused_(std::move(paused)) {
  ++*paused_;
}

DataParallelPause::DataParallelPause(DataParallelPause&& other) noexcept = default;

DataParallelPause::~DataParallelPause() {
  if (paused_) --*paused_;
}

}  // namespace posenc
