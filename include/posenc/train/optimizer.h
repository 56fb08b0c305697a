#pragma once

#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "posenc/export.h"
#include "posenc/train/checkpointable.h"
#include "posenc/train/option_ref.h"

namespace posenc POSENC_EXPORT {
namespace train {
struct OptionsAccess;
}

/// Base class of all optimisers' options, with PyTorch's names. As in Python, a parameter group
/// keeps the options that were set for it and takes the others from the optimiser: a group with
/// weight_decay(0) has no weight decay, whatever the optimiser's. (LibTorch compares with the
/// constructor's defaults instead and would override that 0.) Assigning to `options.lr()` and
/// set_lr() set an option as lr(value) does.
template <typename Derived>
class OptimizerOptions : public torch::optim::OptimizerCloneableOptions<Derived>,
                         public InitialLearningRate {
 public:
  /// The learning rate.
  POSENC_OPTIMIZER_ARG(double, lr) = 1e-3;
  /// Maximises the objective instead of minimising it.
  POSENC_OPTIMIZER_ARG(bool, maximize) = false;

 public:
  /// The learning rate.
  double get_lr() const override { return lr_; }
  /// Sets the learning rate.
  void set_lr(double lr) override { this->lr(lr); }
  /// Reads the options.
  void serialize(torch::serialize::InputArchive& archive) override;
  /// Writes the options.
  void serialize(torch::serialize::OutputArchive& archive) const override;

 protected:
  std::set<std::string> given_;  ///< the names of the options that were set

 private:
  friend struct train::OptionsAccess;
};

/// Base class of the options of optimisers that keep two moments of the gradient.
template <typename Derived>
class MomentsOptions : public OptimizerOptions<Derived> {
 public:
  /// b1 and b2.
  using Betas = std::tuple<double, double>;
  /// The decay rates of the two moments.
  POSENC_OPTIMIZER_ARG(Betas, betas) = Betas(0.9, 0.999);
  /// Added to the denominator.
  POSENC_OPTIMIZER_ARG(double, eps) = 1e-8;

 private:
  friend struct train::OptionsAccess;
};

/// Base class of posenc's optimisers. As it derives from torch::optim::Optimizer, it works with
/// LRScheduler, zero_grad, torch::save and torch::load.
///
/// - A parameter that is listed twice in a group is updated once; in two groups it is an error, and
///   so it is where LibTorch's own functions, which are not virtual, have listed it twice.
/// - step() checks all gradients before it changes anything.
/// - load() changes nothing if it fails, restores state on the parameter's device and in its dtype,
///   and reads archives of LibTorch's optimiser with the same rule.
///
/// Errors: c10::ValueError for options out of range; c10::TypeError for gradients with a layout or
/// dtype that is not supported. Both name the parameter by group and index.
template <typename Options, typename State>
class OptimizerBase : public torch::optim::Optimizer, public CheckpointableOptimizer {
 public:
  /// An optimiser of parameter groups; `defaults` are the options that a group does not set.
  explicit OptimizerBase(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                         const Options& defaults = {});
  /// An optimiser of a single group.
  explicit OptimizerBase(std::vector<torch::Tensor> parameters, const Options& defaults = {})
      : OptimizerBase({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults) {}

  /// Adds a group after checking it. Hides `Optimizer`'s function, which is not virtual.
  void add_param_group(const torch::optim::OptimizerParamGroup& group);
  /// Adds parameters to the first group.
  void add_parameters(const std::vector<torch::Tensor>& parameters);

  /// Updates all parameters that have a gradient; returns the loss if there is a `closure`.
  torch::Tensor step(LossClosure closure = nullptr) final;
  /// Writes options and state.
  void save(torch::serialize::OutputArchive& archive) const final;
  /// Reads options and state.
  void load(torch::serialize::InputArchive& archive) final;

  /// The update rule.
  std::string rule() const final;
  /// Returns the options of a parameter group.
  NamedOptions named_options(std::size_t group) const final;
  /// Sets options of a parameter group; see CheckpointableOptimizer.
  void set_named_options(std::size_t group, const NamedOptions& options) final;

 protected:
  /// A parameter that has a gradient, and its state.
  struct Entry {
    torch::Tensor parameter;  ///< the parameter
    torch::Tensor gradient;   ///< its gradient
    State* state;             ///< its state, which the optimiser owns
  };

  /// Updates the parameters of a group, which have been checked. Autograd records nothing here.
  virtual void step_group(const Options& options, std::vector<Entry>& entries) = 0;

 private:
  Options& options_of(std::size_t group);
  void check_new(const torch::Tensor& parameter) const;
  /// New parameters, each checked and listed once.
  std::vector<torch::Tensor> checked_once(const std::vector<torch::Tensor>& parameters) const;
  std::vector<Entry> entries_of(std::size_t group, std::set<const void*>& seen);
};

}  // namespace posenc
