#include "train/callbacks.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "train/check_run.h"
#include "train/checkpoint/generators.h"
#include "train/checkpoint/optimizer_options.h"
#include "train/checkpoint/run_checks.h"
#include "train/parallel/collectives.h"

namespace posenc::train {
namespace {

using GroupOptions = std::vector<NamedOptions>;

// What `report` may change on rank 0 only: it is not called on the others.
class OfRank0 {
 public:
  explicit OfRank0(const TrainingRun& run) : run_(run), options_(io::options_of(*run.optimizer)) {
    for (const auto& item : run.module->named_parameters())
      frozen_.emplace_back(item.key(), item.value(), item.value().requires_grad());
    for (const auto& item : tensors()) versions_[item.key()] = version_of(item.value());
  }

  // The first tensor that was written or replaced, as its version tells; empty: none.
  std::string written() const {
    const StateDict now = tensors();
    for (const auto& [name, version] : versions_) {
      const at::Tensor* const tensor = now.find(name);
      if (tensor == nullptr || version_of(*tensor) != version) return name;
    }
    for (const auto& item : now)
      if (versions_.count(item.key()) == 0) return item.key();
    return "";
  }

  // Puts requires_grad back, and throws for what cannot be shared.
  bool options_changed() {
    std::string refrozen;
    for (auto& [name, parameter, requires_grad] : frozen_) {
      if (parameter.requires_grad() == requires_grad) continue;
      parameter.set_requires_grad(requires_grad);
      if (refrozen.empty()) refrozen = name;
    }
    TORCH_CHECK_VALUE(refrozen.empty(),
                      "[Trainer] `report` must not change requires_grad in a group, since it is "
                      "called on rank 0 only. Got another one of ",
                      refrozen, "; change it on every process, between calls of train()");
    const GroupOptions now = io::options_of(*run_.optimizer);
    TORCH_CHECK_VALUE(names_of(now) == names_of(options_),
                      "[Trainer] `report` must not add parameter groups, or a first schedule, in a "
                      "group, since it is called on rank 0 only. Got ",
                      names_of(now).size(), " options instead of ", names_of(options_).size());
    if (now == options_) return false;
    try {
      io::check_options(*run_.optimizer, "Trainer");
    } catch (...) {
      io::set_options(*run_.optimizer, options_);
      throw;
    }
    return true;
  }

 private:
  using Version = std::pair<const at::TensorImpl*, int64_t>;
  // Tensors made in InferenceMode have none.
  static Version version_of(const at::Tensor& tensor) {
    return {tensor.unsafeGetTensorImpl(), tensor.is_inference() ? 0 : tensor._version()};
  }

  // The weights and the optimiser's state; of buffers, rank 0's are those of all.
  StateDict tensors() const {
    StateDict all = run_.module->named_parameters();
    for (const auto& item : io::named_states(run_)) all.insert(item.key(), item.value());
    return all;
  }

  // Which options there are, in the order in which they are sent.
  static std::vector<std::pair<std::size_t, std::string>> names_of(const GroupOptions& options) {
    std::vector<std::pair<std::size_t, std::string>> names;
    for (std::size_t i = 0; i < options.size(); ++i) {
      for (const auto& [name, value] : options[i]) names.emplace_back(i, name);
    }
    return names;
  }

  const TrainingRun& run_;
  GroupOptions options_;
  std::vector<std::tuple<std::string, at::Tensor, bool>> frozen_;
  std::map<std::string, Version> versions_;
};

}  // namespace

Modes::Modes(torch::nn::Module& root) { add("", root, nullptr); }

void Modes::add(const std::string& name, torch::nn::Module& module,
                const std::shared_ptr<torch::nn::Module>& owner) {
  parts_.push_back({name, &module, owner, module.is_training()});
  for (const auto& child : module.named_children())
    add(name.empty() ? child.key() : name + "." + child.key(), *child.value(), child.value());
}

void Modes::record() {
  for (Part& part : parts_) part.training = part.module->is_training();
}

// A parent sets its children's modes with its own, so it comes first.
void Modes::restore() {
  for (const Part& part : parts_) {
    if (part.module->is_training() != part.training) part.module->train(part.training);
  }
}

std::string Modes::text() const {
  std::string text;
  for (const Part& part : parts_) {
    if (!part.training) text += "in eval mode: " + part.name + "\n";
  }
  return text;
}

std::unique_ptr<Modes> start_training(torch::nn::Module& root, Modes* last) {
  if (!root.is_training()) {
    root.train();
    if (last != nullptr) last->restore();
  }
  return std::make_unique<Modes>(root);
}

Reported call_report(const TrainingRun& run, Modes& modes, const std::function<void()>& report) {
  Reported result;
  std::optional<OfRank0> before;
  if (run.group.size() > 1) before.emplace(run);
  modes.record();
  const StateDict generators = io::generator_states();
  {
    const parallel::RankAlone alone(run.group);
    keep_first(result.thrown, report);
  }
  io::set_generator_states(generators);
  modes.restore();
  if (before) {
    keep_first(result.thrown, [&] {
      const std::string name = before->written();
      result.wrote = !name.empty();
      TORCH_CHECK_VALUE(!result.wrote,
                        "[Trainer] `report` must not write weights or the optimiser's state in a "
                        "group, since it is called on rank 0 only. Got a write to ",
                        name, "; resume() from the checkpoint");
    });
  }
  if (before)
    keep_first(result.thrown, [&] { result.options_changed = before->options_changed(); });
  keep_first(result.thrown, [&] { check_run(run, /*checkpoint=*/""); });
  return result;
}

void share_options(const TrainingRun& run, const char* caller) {
  GroupOptions options = io::options_of(*run.optimizer);
  std::size_t count = 0;
  for (const NamedOptions& group : options) count += group.size();
  const at::Tensor values =
      at::empty({static_cast<int64_t>(count)}, at::TensorOptions(at::kDouble));
  double* next = values.mutable_data_ptr<double>();
  for (const NamedOptions& group : options) {
    for (const auto& [name, value] : group) *next++ = value;
  }
  parallel::broadcast(run.group, values, /*root=*/0, caller);
  next = values.mutable_data_ptr<double>();
  for (NamedOptions& group : options) {
    for (auto& [name, value] : group) value = *next++;
  }
  io::set_options(*run.optimizer, options);
}

}  // namespace posenc::train
