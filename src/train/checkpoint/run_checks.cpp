#include "train/checkpoint/run_checks.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/view_as_real.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cmath>

#include "train/checkpoint/optimizer_options.h"
#include "train/checkpoint/optimizer_state.h"
#include "weights/common/file.h"
#include "weights/common/module_state.h"
#include "weights/common/tensor.h"

namespace posenc::io {
namespace {

constexpr const char* kSave = "save_checkpoint";

// In one pass, and for most types without memory of its own; NaN is the least and the largest
// element. What has no such elements counts as finite.
bool is_finite(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.numel() == 0 || !is_dense_with_data(tensor)) return true;
  const at::ScalarType type = tensor.scalar_type();
  if (at::isComplexType(type)) return is_finite(at::view_as_real(tensor.detach().resolve_conj()));
  if (!at::isFloatingType(type) || type == at::ScalarType::Float4_e2m1fn_x2) return true;
  // ATen has no reductions of the types of one byte.
  const at::Tensor values =
      c10::isFloat8Type(type) ? tensor.detach().to(at::kFloat) : tensor.detach();
  const auto [least, largest] = at::aminmax(values);
  return std::isfinite(least.item<double>()) && std::isfinite(largest.item<double>());
}

using Tensors = std::set<const at::TensorImpl*>;

Tensors trained_tensors(const TrainingRun& run) {
  Tensors trained;
  for (const auto& group : run.optimizer->param_groups()) {
    for (const auto& parameter : group.params())
      if (parameter.requires_grad()) trained.insert(parameter.unsafeGetTensorImpl());
  }
  return trained;
}

}  // namespace

void check_can_save(const std::string& path, const TrainingRun& run) {
  in_context(kSave, path, [&] {
    record_of(*run.optimizer, parameter_names(*run.module, *run.optimizer, kSave));
    if (run.group.rank() == 0) AtomicFile file(path);
  });
}

std::set<std::string> untrained_not_finite(const TrainingRun& run) {
  std::set<std::string> names;
  const Tensors trained = trained_tensors(run);
  for (const auto& item : module_state(*run.module).tensors) {
    const at::Tensor& tensor = item.value();
    if (trained.count(tensor.unsafeGetTensorImpl()) == 0 && !is_finite(tensor))
      names.insert(item.key());
  }
  return names;
}

StateDict named_states(const TrainingRun& run) {
  StateDict states;
  if (!is_savable(*run.optimizer)) return states;
  const auto record =
      record_of(*run.optimizer, parameter_names(*run.module, *run.optimizer, kSave));
  for (const auto& item : record.tensors) {
    const std::size_t field = item.key().rfind('.') + 1;
    const std::string name = record.values.at(item.key().substr(0, field) + "name");
    states.insert("the state " + item.key().substr(field) + " of " + name, item.value());
  }
  return states;
}

std::string first_not_finite(const TrainingRun& run, const std::set<std::string>& before) {
  const auto names = parameter_names(*run.module, *run.optimizer, kSave);
  const auto& groups = run.optimizer->param_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::size_t k = 0; k < names[i].size(); ++k) {
      const at::Tensor& parameter = groups[i].params()[k];
      if (parameter.requires_grad() && !is_finite(parameter)) return names[i][k];
    }
  }
  Tensors seen = trained_tensors(run);
  for (const auto& item : module_state(*run.module).tensors) {
    const bool is_new = seen.insert(item.value().unsafeGetTensorImpl()).second;
    if (is_new && before.count(item.key()) == 0 && !is_finite(item.value())) return item.key();
  }
  for (const auto& item : named_states(run))
    if (!is_finite(item.value())) return item.key();
  return "";
}

}  // namespace posenc::io
