#include "posenc/positions/nn/grid_position_bias.h"

#include <torch/nn/init.h>
#include <torch/types.h>

#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "posenc/core/skip_init.h"
#include "posenc/positions/relative/bias.h"

namespace posenc {
GridPositionBiasImpl::GridPositionBiasImpl(GridPositionBiasOptions options_)
    : options(std::move(options_)) {
  GridPositionBiasImpl::reset();
}

void GridPositionBiasImpl::reset() {
  const relative::Grid grid = options.grid();
  check_positive("GridPositionBias", "num_heads", options.num_heads());
  check_positive("GridPositionBias", "height", grid.height);
  check_positive("GridPositionBias", "width", grid.width);
  const int64_t rows = (2 * grid.height - 1) * (2 * grid.width - 1) + 3;
  weight = register_parameter("weight", torch::empty({rows, options.num_heads()}));
  if (!SkipInit::is_active()) reset_parameters();
}

void GridPositionBiasImpl::reset_parameters() { torch::nn::init::zeros_(weight); }

void GridPositionBiasImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "GridPositionBias", options, GridPositionBiasOptions({-1, -1}, -1));
}

torch::Tensor GridPositionBiasImpl::forward(std::optional<relative::Grid> grid) {
  return relative_grid_bias(weight, options.grid(), grid.value_or(options.grid()));
}

}  // namespace posenc
