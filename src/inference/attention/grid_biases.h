#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "posenc/positions/nn/grid_position_bias.h"

namespace posenc::inference {

/// The grid biases of a stack's layers, each the sum of the layer's own and that of the stack. They
/// are gathered from their tables when a call has another grid than the last one.
class GridBiases {
 public:
  /// The number of the sum of these two among those so far, where it is added unless it is there;
  /// nothing if both are null.
  std::optional<std::size_t> add(const GridPositionBiasImpl* shared,
                                 const GridPositionBiasImpl* own);

  bool empty() const { return sums_.empty(); }
  /// The biases (1, H, 1 + N, 1 + N) for a grid, that of each table unless given, with neighbouring
  /// queries side by side in memory. Null if there are none.
  std::shared_ptr<const std::vector<at::Tensor>> of(
      const std::optional<relative::Grid>& grid) const;

 private:
  struct Table {
    at::Tensor weight;
    relative::Grid grid;
  };

  std::vector<std::vector<Table>> sums_;
  mutable std::mutex mutex_;
  mutable std::optional<relative::Grid> last_;
  mutable std::shared_ptr<const std::vector<at::Tensor>> biases_;  // for the last grid
};

}  // namespace posenc::inference
