#include <ATen/ops/sparse_coo_tensor.h>

#include "differential/ops.h"
#include "train/make_optimizer.h"

namespace posenc::differential {
namespace {

// The gradient of parameter k in a step, of the same kind as Python's: dense, sparse or none.
at::Tensor gradient(const StateDict& tensors, const at::Tensor& parameter, const std::string& key) {
  if (tensors.contains(key)) {
    const auto grad = tensors[key];
    return parameter.is_contiguous() ? grad : grad.t().contiguous().t();
  }
  if (!tensors.contains(key + ".rows")) return {};
  const auto sparse = at::sparse_coo_tensor(tensors[key + ".rows"].unsqueeze(0),
                                            tensors[key + ".values"], parameter.sizes());
  return sparse._coalesced_(tensors.contains(key + ".coalesced"));
}

StateDict optimizer(const Json& options, const StateDict& tensors) {
  std::vector<at::Tensor> parameters;
  const auto key = [](const char* what, size_t a) { return what + std::to_string(a); };
  while (tensors.contains(key("start.", parameters.size()))) {
    auto p = tensors[key("start.", parameters.size())].clone();
    if (options.at("transposed")[parameters.size()].get<bool>()) p = p.t().contiguous().t();
    parameters.push_back(p.requires_grad_());
  }
  const auto use = testing::make_optimizer(options.at("optimizer"), options.at("options"),
                                           options.at("groups"), parameters);
  StateDict results;
  for (size_t step = 0; step < options.at("steps"); ++step) {
    for (size_t k = 0; k < parameters.size(); ++k)
      parameters[k].mutable_grad() =
          gradient(tensors, parameters[k], key("grad.", step) + key(".", k));
    use->step();
    for (size_t k = 0; k < parameters.size(); ++k)
      results.insert(key("after.", step) + key(".", k), parameters[k].detach().clone());
  }
  return results;
}

}  // namespace

Ops optimizer_ops() { return {{"optimizer", optimizer}}; }

}  // namespace posenc::differential
