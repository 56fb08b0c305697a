#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace posenc {

/// A tensor of a module that is computed and not learned: a table with one row a position.
struct ComputedTable {
  std::string name;      ///< below the module, such as `pe` or `embedding.weight`
  int64_t row_axis = 0;  ///< the axis whose length may be another in a file
  /// What the recipe gives, in the shape and dtype that the module's tensor has now, on the CPU.
  std::function<at::Tensor()> compute;
  /// How far an entry may lie from it that the same recipe gave on another machine, before it is
  /// rounded to a narrower dtype.
  double tolerance = 0.0;
};

/// A name that PyTorch's module has for a tensor that this module registers once.
struct TiedName {
  std::string alias;  ///< PyTorch's further name, such as `output.weight`
  std::string name;   ///< the registered one, such as `embedding.weight`
};

/// Optional interface through which a module describes its tensors, and those of its children, to
/// the loader and the saver. Any torch::nn::Module may inherit it beside Module; all of it is
/// optional.
class WeightNotes {
 public:
  virtual ~WeightNotes() = default;

  virtual std::vector<ComputedTable> computed_tables() const { return {}; }
  virtual std::vector<TiedName> tied_names() const { return {}; }
  /// Registered buffers that PyTorch would not save, and names that its files have for such.
  virtual std::vector<std::string> non_persistent_names() const { return {}; }
};

}  // namespace posenc
