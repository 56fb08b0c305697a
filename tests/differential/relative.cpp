// Relative positions of a preset, and the gradients of its tensors.

#include "posenc/relative/preset.h"

#include <torch/autograd.h>

#include <vector>

#include "differential/ops.h"

namespace posenc::differential {
namespace {

RelativeSetting setting_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (!value.empty() && value.at(0).is_string()) return value.get<std::vector<std::string>>();
  return value.get<std::vector<int64_t>>();
}

// The outputs, and with `cotangent.NAME` for some of them `grad.NAME` of every real tensor that
// these depend on.
StateDict relative_case(const Json& options, const StateDict& tensors) {
  RelativeInputs inputs;
  for (const auto& [name, value] : options.at("settings").items())
    inputs.settings.emplace(name, setting_of(value));
  std::vector<std::string> names;
  std::vector<at::Tensor> leaves, results, cotangents;
  for (const auto& item : tensors) {
    if (item.key().rfind("cotangent.", 0) == 0) continue;
    at::Tensor tensor = item.value();
    if (tensor.is_floating_point()) {
      tensor = tensor.clone().requires_grad_();
      names.push_back(item.key());
      leaves.push_back(tensor);
    }
    inputs.tensors.emplace(item.key(), tensor);
  }
  StateDict out;
  for (const auto& [name, tensor] :
       relative_outputs(options.at("settings").at("preset").get<std::string>(), inputs)) {
    out.insert(name, tensor);
    if (!tensors.contains("cotangent." + name)) continue;
    results.push_back(tensor);
    cotangents.push_back(tensors["cotangent." + name]);
  }
  if (results.empty()) return out;
  const auto gradients =
      torch::autograd::grad(results, leaves, cotangents, /*retain_graph=*/std::nullopt,
                            /*create_graph=*/false, /*allow_unused=*/true);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (gradients[i].defined()) out.insert("grad." + names[i], gradients[i]);
  }
  return out;
}

}  // namespace

Ops relative_ops() { return {{"relative", relative_case}}; }

}  // namespace posenc::differential
