#pragma once

// Member definitions of OptimizerOptions and OptimizerBase, for the sources that instantiate them.

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/optim/adam.h>
#include <torch/optim/serialize.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

#include "core/torch_internals/profiled.h"
#include "core/torch_internals/shortcut.h"
#include "posenc/train/optimizer.h"
#include "train/optimizer_parts.h"

namespace posenc {
template <typename Derived>
void OptimizerOptions<Derived>::serialize(torch::serialize::OutputArchive& archive) const {
  const auto& own = static_cast<const Derived&>(*this);
  train::OptionsAccess::fields<Derived>(
      [&](const char* name, auto member) { archive.write(name, c10::IValue(own.*member)); });
  if (own.initial_lr()) archive.write(train::kInitialRate, c10::IValue(*own.initial_lr()));
}

// LibTorch's archives have no `maximize`, because its optimisers only minimise.
template <typename Derived>
void OptimizerOptions<Derived>::serialize(torch::serialize::InputArchive& archive) {
  auto& own = static_cast<Derived&>(*this);
  train::OptionsAccess::fields<Derived>([&](const char* name, auto member) {
    auto& value = own.*member;
    c10::IValue found;
    const bool in_archive = archive.try_read(name, found);
    TORCH_CHECK_VALUE(in_archive || name == std::string("maximize"), "[",
                      train::Traits<Derived>::kOptimizer,
                      "] the archive must be of the same rule. Got one without ", name);
    if (in_archive) value = found.to<std::decay_t<decltype(value)>>();
  });
  c10::IValue initial;
  if (archive.try_read(train::kInitialRate, initial)) own.set_initial_lr(initial.toDouble());
}

template <typename Options, typename State>
OptimizerBase<Options, State>::OptimizerBase(
    const std::vector<torch::optim::OptimizerParamGroup>& groups, const Options& defaults)
    : Optimizer(std::vector<torch::optim::OptimizerParamGroup>(),
                std::make_unique<Options>(defaults)) {
  train::Traits<Options>::check(defaults);
  for (const auto& group : groups) add_param_group(group);
}

template <typename Options, typename State>
Options& OptimizerBase<Options, State>::options_of(std::size_t group) {
  return train::own_options<Options>(param_groups_.at(group).options(), group);
}

template <typename Options, typename State>
void OptimizerBase<Options, State>::check_new(const torch::Tensor& parameter) const {
  const char* name = train::Traits<Options>::kOptimizer;
  TORCH_CHECK_VALUE(parameter.defined(), "[", name, "] a parameter must be defined");
  TORCH_CHECK_VALUE(parameter.is_leaf(), "[", name, "] a parameter must be a leaf. Got ",
                    parameter.sizes(), " computed by ", torch_internals::origin_of(parameter));
  TORCH_CHECK_TYPE(!parameter.is_sparse() && at::isFloatingType(parameter.scalar_type()), "[", name,
                   "] a parameter must be dense and of a real floating type. Got ",
                   parameter.toString());
  for (const auto& group : param_groups_) {
    for (const auto& other : group.params()) {
      TORCH_CHECK_VALUE(!other.is_same(parameter), "[", name,
                        "] a parameter must be in one group only. Got one of ", parameter.sizes(),
                        " in two");
    }
  }
}

template <typename Options, typename State>
std::vector<torch::Tensor> OptimizerBase<Options, State>::checked_once(
    const std::vector<torch::Tensor>& parameters) const {
  std::vector<torch::Tensor> once;
  for (const auto& parameter : parameters) {
    check_new(parameter);
    const auto same = [&](const torch::Tensor& other) { return other.is_same(parameter); };
    if (std::none_of(once.begin(), once.end(), same)) once.push_back(parameter);
  }
  return once;
}

template <typename Options, typename State>
void OptimizerBase<Options, State>::add_param_group(
    const torch::optim::OptimizerParamGroup& group) {
  const auto& defaults = static_cast<const Options&>(*defaults_);
  auto options = std::make_unique<Options>(defaults);
  if (group.has_options()) {
    const auto* given = dynamic_cast<const Options*>(&group.options());
    TORCH_CHECK_TYPE(given != nullptr, "[", train::Traits<Options>::kOptimizer,
                     "] the options of a group must be ", train::Traits<Options>::kOptimizer,
                     "Options");
    *options = *given;
    train::OptionsAccess::inherit(*options, defaults);
  }
  train::Traits<Options>::check(*options);
  param_groups_.emplace_back(checked_once(group.params()), std::move(options));
}

template <typename Options, typename State>
void OptimizerBase<Options, State>::add_parameters(const std::vector<torch::Tensor>& parameters) {
  TORCH_CHECK_VALUE(!param_groups_.empty(), "[", train::Traits<Options>::kOptimizer,
                    "] there is no group yet");
  auto& present = param_groups_.front().params();
  const auto added = checked_once(parameters);
  present.insert(present.end(), added.begin(), added.end());
}

// The parameters of a group that have a gradient, after all checks that the kernels rely on: ATen's
// access memory unchecked.
template <typename Options, typename State>
std::vector<typename OptimizerBase<Options, State>::Entry>
OptimizerBase<Options, State>::entries_of(std::size_t group, std::set<const void*>& seen) {
  std::vector<Entry> entries;
  const auto& parameters = param_groups_[group].params();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& p = parameters[i];
    const auto& gradient = p.grad();
    if (!gradient.defined()) continue;
    const auto where = [&] {
      return c10::str("[", train::Traits<Options>::kOptimizer, "] ",
                      train::parameter_text(group, i, p), ": ");
    };
    TORCH_CHECK_VALUE(seen.insert(p.unsafeGetTensorImpl()).second, where(),
                      "a parameter must be listed once. Got it a second time");
    const char* const rule = torch_internals::write_violation(p);
    TORCH_CHECK_VALUE(rule == nullptr, where(), "a parameter that is stepped ", rule);
    const char* refused = train::Traits<Options>::refusal(options_of(group), gradient);
    TORCH_CHECK_TYPE(refused == nullptr, where(), refused);
    TORCH_CHECK_VALUE(gradient.sizes() == p.sizes(), where(),
                      "the gradient must have its shape. Got ", gradient.sizes());
    TORCH_CHECK_TYPE(gradient.scalar_type() == p.scalar_type() && gradient.device() == p.device(),
                     where(), "the gradient must have its type and device, ", p.toString(),
                     ". Got ", gradient.toString());
    entries.push_back({p, gradient, nullptr});
    const auto found = state_.find(p.unsafeGetTensorImpl());
    if (found == state_.end()) continue;
    entries.back().state = static_cast<State*>(found->second.get());
    for (const at::Tensor* tensor : train::tensors_of(*entries.back().state)) {
      if (!tensor->defined()) continue;
      const char* const of_state = torch_internals::write_violation(*tensor);
      TORCH_CHECK_VALUE(of_state == nullptr, where(), "its state ", of_state);
      TORCH_CHECK_VALUE(tensor->sizes() == p.sizes(), where(),
                        "its state must have its shape. Got ", tensor->sizes());
      TORCH_CHECK_TYPE(tensor->scalar_type() == p.scalar_type() && tensor->device() == p.device(),
                       where(), "its state must have its type and device, ", p.toString(), ". Got ",
                       tensor->toString(), "; make the optimiser after the module has been moved");
    }
  }
  return entries;
}

template <typename Options, typename State>
torch::Tensor OptimizerBase<Options, State>::step(LossClosure closure) {
  torch::Tensor loss;
  if (closure) {
    const at::AutoGradMode with_grad(true);
    loss = closure();
  }
  const at::NoGradGuard no_grad;
  static const std::string name = c10::str("posenc::", train::Traits<Options>::kOptimizer, ".step");
  const torch_internals::Profiled profiled(name);
  std::vector<std::vector<Entry>> groups;
  std::set<const void*> seen;
  for (std::size_t i = 0; i < param_groups_.size(); ++i) groups.push_back(entries_of(i, seen));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (auto& entry : groups[i]) {
      if (entry.state != nullptr) continue;
      auto& state = state_[entry.parameter.unsafeGetTensorImpl()];
      state = std::make_unique<State>();
      entry.state = static_cast<State*>(state.get());
    }
    if (!groups[i].empty()) step_group(options_of(i), groups[i]);
  }
  return loss;
}

template <typename Options, typename State>
void OptimizerBase<Options, State>::save(torch::serialize::OutputArchive& archive) const {
  torch::optim::serialize<State, Options>(archive, *this);
  archive.write(train::kArchiveRule, c10::IValue(rule()));
}

template <typename Options, typename State>
void OptimizerBase<Options, State>::load(torch::serialize::InputArchive& archive) {
  const at::NoGradGuard no_grad;
  train::Loaded loaded(std::vector<torch::optim::OptimizerParamGroup>(), defaults_->clone());
  for (const auto& group : param_groups_) loaded.param_groups().push_back(group);
  torch::optim::serialize<State, Options>(archive, loaded);
  c10::IValue other;
  if (archive.try_read(train::kArchiveRule, other)) {
    TORCH_CHECK_VALUE(other.toStringRef() == rule(), "[", train::Traits<Options>::kOptimizer,
                      "] the archive must be of the rule ", rule(), ". Got ", other.toStringRef());
  }
  for (std::size_t group = 0; group < param_groups_.size(); ++group) {
    train::Traits<Options>::check(
        train::own_options<Options>(loaded.param_groups()[group].options(), group));
    const auto& parameters = param_groups_[group].params();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto found = loaded.state().find(parameters[i].unsafeGetTensorImpl());
      if (found == loaded.state().end()) continue;
      for (at::Tensor* tensor : train::tensors_of(static_cast<State&>(*found->second))) {
        if (!tensor->defined()) continue;
        TORCH_CHECK_VALUE(tensor->sizes() == parameters[i].sizes(), "[",
                          train::Traits<Options>::kOptimizer, "] ",
                          train::parameter_text(group, i, parameters[i]),
                          ": the archive has state of another shape, ", tensor->sizes());
        *tensor = tensor->to(parameters[i].options().requires_grad(false));
      }
    }
  }
  for (std::size_t group = 0; group < param_groups_.size(); ++group) {
    options_of(group) = train::own_options<Options>(loaded.param_groups()[group].options(), group);
  }
  state_ = std::move(loaded.state());
}

template <typename Options, typename State>
std::string OptimizerBase<Options, State>::rule() const {
  return train::Traits<Options>::kRule;
}

template <typename Options, typename State>
NamedOptions OptimizerBase<Options, State>::named_options(std::size_t group) const {
  auto options = train::own_options<const Options>(param_groups_.at(group).options(), group);
  NamedOptions named;
  train::OptionsAccess::fields<Options>([&](const char* name, auto member) {
    train::numbers(name, options.*member, [&](const std::string& key, auto& value) {
      named[key] = static_cast<double>(value);
    });
  });
  if (options.initial_lr()) named[train::kInitialRate] = *options.initial_lr();
  return named;
}

template <typename Options, typename State>
void OptimizerBase<Options, State>::set_named_options(std::size_t group,
                                                      const NamedOptions& named) {
  Options options = options_of(group);
  std::size_t known = 0;
  train::OptionsAccess::fields<Options>([&](const char* name, auto member) {
    train::numbers(name, options.*member, [&](const std::string& key, auto& value) {
      const auto found = named.find(key);
      if (found == named.end()) return;
      value = static_cast<std::decay_t<decltype(value)>>(found->second);
      ++known;
    });
  });
  const auto initial = named.find(train::kInitialRate);
  if (initial != named.end()) {
    train::check_not_negative(train::Traits<Options>::kOptimizer, initial->first.c_str(),
                              initial->second);
    options.set_initial_lr(initial->second);
    ++known;
  }
  TORCH_CHECK_VALUE(known == named.size(), "[", train::Traits<Options>::kOptimizer, "] has ", known,
                    " of the ", named.size(), " options that are named");
  train::Traits<Options>::check(options);
  options_of(group) = options;
}

}  // namespace posenc
