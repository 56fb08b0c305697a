#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace posenc {

/// Options of one parameter group by name; a flag is 0 or 1.
using NamedOptions = std::map<std::string, double>;

/// Optional interface through which an optimiser exposes its options and its state to checkpoints.
/// Any torch::optim::Optimizer may inherit it beside Optimizer. The state of a parameter is
/// LibTorch's own AdamParamState or SGDParamState.
class OptimizerNotes {
 public:
  virtual ~OptimizerNotes() = default;

  /// The rule that is followed: `Adam`, `AdamW`, `SGD`, `SparseAdam`. Optimisers of one rule can go
  /// on from each other's state.
  virtual std::string rule() const = 0;
  virtual NamedOptions named_options(std::size_t group) const = 0;
  /// Options that are not named stay. All or nothing; throws c10::ValueError for a value or a name
  /// that the optimiser does not take.
  virtual void set_named_options(std::size_t group, const NamedOptions& options) = 0;
};

}  // namespace posenc
