#include "posenc/transformer/functional/window_partition.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/roll.h>
#include <c10/util/Exception.h>

#include "positions/relative/grid_rules.h"

namespace posenc::functional {
namespace {

using relative::Grid;

void check_window(const char* function, Grid window, int64_t shift) {
  TORCH_CHECK_VALUE(window.height > 0 && window.width > 0, "[", function,
                    "] the window must have positive sides. Got ", window.height, " x ",
                    window.width);
  TORCH_CHECK_VALUE(shift >= 0, "[", function, "] shift must not be negative. Got ", shift);
}

int64_t whole_size(int64_t size, int64_t window) { return (size + window - 1) / window * window; }

at::Tensor rolled(const at::Tensor& x, int64_t shift) {
  return shift == 0 ? x : at::roll(x, {shift, shift}, {1, 2});
}

}  // namespace

Grid padded_grid(Grid grid, Grid window) {
  return {whole_size(grid.height, window.height), whole_size(grid.width, window.width)};
}

at::Tensor window_partition(const at::Tensor& x, Grid window, int64_t shift) {
  constexpr const char* kPartition = "window_partition";
  check_window(kPartition, window, shift);
  TORCH_CHECK_VALUE(x.dim() == 4, "[", kPartition, "] x must be (B, H, W, C). Got ", x.sizes());
  const Grid grid = {x.size(1), x.size(2)}, all = padded_grid(grid, window);
  const bool pads = all.height != grid.height || all.width != grid.width;
  const at::Tensor padded =
      pads ? at::constant_pad_nd(x, {0, 0, 0, all.width - grid.width, 0, all.height - grid.height})
           : x;
  const int64_t down = all.height / window.height, across = all.width / window.width;
  return rolled(padded, -shift)
      .reshape({x.size(0), down, window.height, across, window.width, x.size(3)})
      .transpose(2, 3)
      .reshape({x.size(0), down * across, window.height * window.width, x.size(3)});
}

at::Tensor window_unpartition(const at::Tensor& windows, Grid grid, Grid window, int64_t shift) {
  constexpr const char* kUnpartition = "window_unpartition";
  check_window(kUnpartition, window, shift);
  const Grid all = padded_grid(grid, window);
  const int64_t down = all.height / window.height, across = all.width / window.width;
  TORCH_CHECK_VALUE(windows.dim() == 4 && windows.size(1) == down * across &&
                        windows.size(2) == window.height * window.width,
                    "[", kUnpartition, "] windows must be (B, ", down * across, ", ",
                    window.height * window.width, ", C). Got ", windows.sizes());
  const at::Tensor whole =
      windows.reshape({windows.size(0), down, across, window.height, window.width, windows.size(3)})
          .transpose(2, 3)
          .reshape({windows.size(0), all.height, all.width, windows.size(3)});
  return rolled(whole, shift).slice(1, 0, grid.height).slice(2, 0, grid.width);
}

}  // namespace posenc::functional
