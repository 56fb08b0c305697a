#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// The options of one parameter group by name; a flag is 0 or 1.
using NamedOptions = std::map<std::string, double>;

/// Optional interface through which an optimiser exposes its options and its state to checkpoints.
/// A class derived from torch::optim::Optimizer may inherit it as well. The state of a parameter
/// has to be LibTorch's AdamParamState, AdamWParamState or SGDParamState, one of them for all.
class CheckpointableOptimizer {
 public:
  virtual ~CheckpointableOptimizer() = default;

  /// The update rule: `Adam`, `AdamW`, `SGD`, `SparseAdam`, or a name of your own. An optimiser can
  /// continue from the state of any other optimiser with the same rule.
  virtual std::string rule() const = 0;
  /// Returns the options of a parameter group.
  virtual NamedOptions named_options(std::size_t group) const = 0;
  /// Sets options of a parameter group; those not named keep their values. Throws c10::ValueError
  /// for a name or value that the optimiser does not accept, and then changes nothing.
  virtual void set_named_options(std::size_t group, const NamedOptions& options) = 0;
};

/// Base class of a group's options that keep the learning rate from which schedules start: Python's
/// `initial_lr`. The first LambdaLR sets it, and later ones begin there.
class InitialLearningRate {
 public:
  virtual ~InitialLearningRate() = default;

  /// The rate; none before the first schedule.
  const std::optional<double>& initial_lr() const noexcept { return initial_lr_; }
  /// Sets the rate.
  void set_initial_lr(double lr) noexcept { initial_lr_ = lr; }

 private:
  std::optional<double> initial_lr_;
};

/// Optional interface through which a learning-rate schedule exposes to checkpoints what it keeps
/// beside its step count. A class derived from torch::optim::LRScheduler may inherit it as well.
class CheckpointableScheduler {
 public:
  virtual ~CheckpointableScheduler() = default;

  /// The kind, such as `LambdaLR`: a schedule continues from the state of its own kind only.
  virtual std::string kind() const = 0;
  /// The numbers by name.
  virtual std::map<std::string, double> numbers() const = 0;
  /// Sets the numbers. Throws c10::ValueError for other names than those of numbers() and for
  /// values that the schedule does not accept, and then changes nothing.
  virtual void set_numbers(const std::map<std::string, double>& numbers) = 0;
};

}  // namespace posenc
