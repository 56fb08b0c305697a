#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "posenc/core/cloneable.h"
#include "posenc/core/state_dict_traits.h"
#include "posenc/export.h"
#include "posenc/positions/sinusoid/options.h"

namespace posenc POSENC_EXPORT {

/// The table of a module and what it is computed from.
struct TableRecipe {
  std::string name;          ///< the tensor's name in the module
  int64_t row_axis;          ///< its axis of positions
  torch::Tensor table;       ///< the tensor; undefined if the module has no table
  SinusoidOptions sinusoid;  ///< the sinusoid
  int64_t length;            ///< the number of positions that the module was made for
};

/// StateDictTraits of a module with a sinusoid's table.
class TableTraits : public StateDictTraits {
 public:
  std::vector<ComputedTable> computed_tables() const override;

 protected:
  /// Returns the module's table.
  virtual TableRecipe table_recipe() const = 0;
  /// Recomputes the table in `dtype`; see convert_table().
  virtual void convert(torch::Dtype dtype);
};

/// Base class of modules with a sinusoid's table. When such a module is converted to another dtype,
/// its table is recomputed from the recipe and rounded once.
template <typename Derived>
class TableModule : public Cloneable<Derived>, public TableTraits {
 public:
  using torch::nn::Module::to;
  /// Moves the module to `device` and converts it to `dtype`.
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override {
    convert(dtype);
    Cloneable<Derived>::to(device, dtype, non_blocking);
  }
  /// Converts the module to `dtype`.
  void to(torch::Dtype dtype, bool non_blocking = false) override {
    convert(dtype);
    Cloneable<Derived>::to(dtype, non_blocking);
  }
};

}  // namespace posenc
