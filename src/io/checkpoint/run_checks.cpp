#include "io/checkpoint/run_checks.h"

#include <ATen/ops/aminmax.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cmath>
#include <tuple>

#include "io/base/atomic_file.h"
#include "io/base/context.h"
#include "io/checkpoint/optimizer_options.h"
#include "io/checkpoint/optimizer_state.h"

namespace posenc::io {
namespace {

constexpr const char* kSave = "save_checkpoint";

// In one pass without memory of its own; NaN is the least and the largest element.
bool is_finite(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.numel() == 0 || !at::isFloatingType(tensor.scalar_type()))
    return true;
  const auto [least, largest] = at::aminmax(tensor.detach());
  return std::isfinite(least.item<double>()) && std::isfinite(largest.item<double>());
}

}  // namespace

void check_can_save(const std::string& path, const TrainingRun& run) {
  in_context(kSave, path, [&] {
    record_of(*run.optimizer, parameter_names(*run.module, *run.optimizer, kSave));
    if (run.group.rank() == 0) AtomicFile file(path);
  });
}

std::string first_not_finite(const TrainingRun& run) {
  const auto names = parameter_names(*run.module, *run.optimizer, kSave);
  const auto& groups = run.optimizer->param_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::size_t k = 0; k < names[i].size(); ++k) {
      const at::Tensor& parameter = groups[i].params()[k];
      if (parameter.requires_grad() && !is_finite(parameter)) return names[i][k];
    }
  }
  if (!is_savable(*run.optimizer)) return "";
  const auto record = record_of(*run.optimizer, names);
  for (const auto& item : record.tensors) {
    if (is_finite(item.value())) continue;
    const std::size_t field = item.key().rfind('.') + 1;
    const std::string name = record.values.at(item.key().substr(0, field) + "name");
    return "the state " + item.key().substr(field) + " of " + name;
  }
  return "";
}

}  // namespace posenc::io
