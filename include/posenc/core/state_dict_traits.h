#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// A tensor of a module that is computed instead of learned: a table with one row per position.
struct ComputedTable {
  std::string name;      ///< relative to the module, such as `pe` or `embedding.weight`
  int64_t row_axis = 0;  ///< the axis whose length may differ in a file
  /// Computes the table on the CPU, in the current shape and dtype of the module's tensor.
  std::function<at::Tensor()> compute;
  /// The largest difference that may occur in an entry computed by the same recipe on another
  /// machine, before rounding to a narrower dtype.
  double tolerance = 0.0;
};

/// A second name in PyTorch's state_dict for a tensor that this module registers once.
struct TiedName {
  std::string alias;  ///< the additional name, such as `output.weight`
  std::string name;   ///< the registered name, such as `embedding.weight`
};

/// Optional interface through which a module describes its tensors, and those of its children, to
/// the loader and the saver. A class derived from torch::nn::Module may inherit it as well and
/// override the functions that apply.
class StateDictTraits {
 public:
  virtual ~StateDictTraits() = default;

  /// The tables that the module can compute.
  virtual std::vector<ComputedTable> computed_tables() const { return {}; }
  /// The additional names of tied tensors.
  virtual std::vector<TiedName> tied_names() const { return {}; }
  /// Names of registered buffers that PyTorch does not save, and of such buffers in its files.
  virtual std::vector<std::string> non_persistent_names() const { return {}; }
};

}  // namespace posenc
