#pragma once

#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "posenc/core/optimizer_notes.h"

/// An option as TORCH_ARG makes it that also remembers whether it was set; `Derived` names the
/// class that the setter returns.
#define POSENC_OPTIMIZER_ARG(T, name)                      \
 public:                                                   \
  Derived& name(const T& value) {                          \
    this->name##_ = value;                                 \
    this->given_.insert(#name);                            \
    return static_cast<Derived&>(*this);                   \
  }                                                        \
  const T& name() const noexcept { return this->name##_; } \
  T& name() noexcept { return this->name##_; }             \
                                                           \
 protected:                                                \
  T name##_

namespace posenc {

/// What the options of all optimisers share. A parameter group has the options that it was given
/// and takes the others from the optimiser, as in Python: a group with weight_decay(0) has none,
/// whatever the optimiser's is. (LibTorch compares with the constructor's defaults instead, and
/// overrides that 0.)
template <typename Options>
class OptimizerOptions : public torch::optim::OptimizerCloneableOptions<Options> {
 public:
  double get_lr() const override { return self().lr(); }
  void set_lr(double lr) override { self().lr() = lr; }
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;

  /// Takes from `defaults` every option that was neither set nor changed here.
  void inherit(const Options& defaults);

 protected:
  std::set<std::string> given_;

 private:
  Options& self() { return static_cast<Options&>(*this); }
  const Options& self() const { return static_cast<const Options&>(*this); }
};

/// The part that posenc's optimisers share: a torch::optim::Optimizer, so that LRScheduler,
/// zero_grad, torch::save and torch::load take it.
///
/// - A parameter that is listed twice in a group is stepped once; in two groups it is an error.
/// - step() checks every gradient before it changes anything.
/// - load() is all or nothing, puts state on the parameter's device and in its dtype, and reads the
///   archives of LibTorch's optimiser of the same rule.
///
/// Errors: c10::ValueError for options out of range, c10::TypeError for gradients of a layout or
/// dtype that the rule cannot take; both name the parameter by group and place.
template <typename Options, typename State>
class OptimizerOf : public torch::optim::Optimizer, public OptimizerNotes {
 public:
  explicit OptimizerOf(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                       const Options& defaults = {});
  explicit OptimizerOf(std::vector<torch::Tensor> parameters, const Options& defaults = {})
      : OptimizerOf({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults) {}

  /// As Optimizer's, with the checks; hides it because that one is not virtual.
  void add_param_group(const torch::optim::OptimizerParamGroup& group);
  /// Adds to the first group.
  void add_parameters(const std::vector<torch::Tensor>& parameters);

  torch::Tensor step(LossClosure closure = nullptr) final;
  void save(torch::serialize::OutputArchive& archive) const final;
  void load(torch::serialize::InputArchive& archive) final;

  std::string rule() const final;
  NamedOptions named_options(std::size_t group) const final;
  void set_named_options(std::size_t group, const NamedOptions& options) final;

 protected:
  /// A parameter that has a gradient, and its state.
  struct Entry {
    torch::Tensor parameter, gradient;
    State* state;
  };

  /// One step of a group's parameters, all of them checked; nothing is recorded by autograd.
  virtual void step_group(const Options& options, std::vector<Entry>& entries) = 0;

 private:
  Options& options_of(std::size_t group);
  void check_new(const torch::Tensor& parameter) const;
  /// New parameters, each checked and listed once.
  std::vector<torch::Tensor> checked_once(const std::vector<torch::Tensor>& parameters) const;
  std::vector<Entry> entries_of(std::size_t group);
};

}  // namespace posenc
