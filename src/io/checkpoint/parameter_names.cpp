#include "io/checkpoint/parameter_names.h"

#include <c10/util/Exception.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <optional>
#include <unordered_map>

namespace posenc::io {
namespace {

constexpr const char* kRule =
    "every parameter of the optimiser must be one of the module's, which is what is saved, clipped "
    "and exchanged. Got ";

// The first parameter that the module does not have, as `parameter 2 of group 0, [5, 3]`.
struct Foreign {
  std::optional<std::string> first;
  bool all = true;
};

}  // namespace

ParameterNames parameter_names(const torch::nn::Module& module,
                               const torch::optim::Optimizer& optimizer, const char* caller) {
  std::unordered_map<const at::TensorImpl*, std::string> own;
  for (const auto& item : module.named_parameters())
    own.emplace(item.value().unsafeGetTensorImpl(), item.key());
  ParameterNames names;
  Foreign foreign;
  for (const auto& group : optimizer.param_groups()) {
    auto& of_group = names.emplace_back();
    for (const auto& parameter : group.params()) {
      const auto found = own.find(parameter.unsafeGetTensorImpl());
      if (found != own.end()) {
        of_group.push_back(found->second);
        foreign.all = false;
      } else if (!foreign.first) {
        foreign.first = c10::str("parameter ", of_group.size(), " of group ", names.size() - 1,
                                 ", ", parameter.defined() ? parameter.sizes() : at::IntArrayRef());
        of_group.emplace_back();
      } else {
        of_group.emplace_back();
      }
    }
  }
  TORCH_CHECK_VALUE(!foreign.first || !foreign.all, "[", caller, "] ", kRule,
                    "none of them: make the optimiser from this module's parameters, after its "
                    "layers are in place");
  TORCH_CHECK_VALUE(!foreign.first, "[", caller, "] ", kRule, foreign.first.value_or(""),
                    ", which the module does not have; register what is trained below one module, "
                    "and make a new optimiser after replacing a layer");
  return names;
}

}  // namespace posenc::io
