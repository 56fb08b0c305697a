#include "train/checkpoint/parameter_names.h"

#include <c10/util/Exception.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <map>
#include <optional>
#include <unordered_map>

#include "train/checkpoint/optimizer_kinds.h"

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

namespace {

using torch::optim::Optimizer;
using Code = WeightsErrorCode;

void check_count(const std::string& what, int64_t expected, const Values& values,
                 const std::string& key) {
  const int64_t count = read_count(values, key);
  if (count == expected) return;
  throw WeightsError(Code::ShapeMismatch, "must have " + std::to_string(expected) + " " + what +
                                              ", as the optimiser has. Got " +
                                              std::to_string(count));
}

WeightsError other_groups(const std::string& name, std::size_t group, const std::string& where) {
  return WeightsError(Code::ShapeMismatch, "must have the parameter groups of the optimiser. Got " +
                                               in_quotes(name) + " in group " +
                                               std::to_string(group) + ", which " + where);
}

WeightsError no_state(const std::string& name, std::size_t group) {
  return WeightsError(Code::MissingKeys,
                      "must have the parameter groups of the optimiser. Got no " + in_quotes(name) +
                          " in group " + std::to_string(group));
}

using GroupOf = std::map<const at::TensorImpl*, std::size_t>;

GroupOf groups_of(const Optimizer& optimizer) {
  GroupOf groups;
  for (std::size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    for (const auto& parameter : optimizer.param_groups()[i].params())
      groups.emplace(parameter.unsafeGetTensorImpl(), i);
  }
  return groups;
}

// Those that record_of() writes: by number across all groups.
StateSlots own_slots(const Optimizer& optimizer) {
  StateSlots slots;
  for (const auto& group : optimizer.param_groups()) {
    for (std::size_t i = 0; i < group.params().size(); ++i)
      slots.push_back(parameter_key(slots.size()));
  }
  return slots;
}

}  // namespace

StateSlots slots_in(const Values& values, const ParameterNames& names, const Optimizer& optimizer,
                    const torch::nn::Module& module) {
  const auto& groups = optimizer.param_groups();
  check_count("parameter groups", static_cast<int64_t>(groups.size()), values, "optimizer.groups");
  for (std::size_t i = 0; i < groups.size(); ++i) {
    check_count("parameters in group " + std::to_string(i),
                static_cast<int64_t>(groups[i].params().size()), values,
                group_key(i) + "parameters");
  }
  StateSlots slots = own_slots(optimizer);
  if (slots.empty() || values.count(slots.front() + kName) == 0) return slots;  // an older file
  const auto own = module.named_parameters();
  const GroupOf group_of = groups_of(optimizer);
  std::map<const at::TensorImpl*, std::string> by_parameter;
  std::size_t index = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::size_t k = 0; k < groups[i].params().size(); ++k) {
      const std::string prefix = parameter_key(index++);
      const auto found = values.find(prefix + kName);
      const std::string name = found == values.end() ? "" : found->second;
      const at::Tensor* const parameter = own.find(name);
      if (parameter == nullptr) throw other_groups(name, i, "the module does not have");
      by_parameter.emplace(parameter->unsafeGetTensorImpl(), prefix);
      const auto listed = group_of.find(parameter->unsafeGetTensorImpl());
      if (listed == group_of.end()) throw other_groups(name, i, "the optimiser does not have");
      if (listed->second != i) {
        throw other_groups(name, i, "the optimiser has in group " + std::to_string(listed->second));
      }
    }
  }
  index = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::size_t k = 0; k < groups[i].params().size(); ++k, ++index) {
      const auto found = by_parameter.find(groups[i].params()[k].unsafeGetTensorImpl());
      if (found == by_parameter.end()) throw no_state(names[i][k], i);
      slots[index] = found->second;
    }
  }
  return slots;
}

}  // namespace posenc::io
