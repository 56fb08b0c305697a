#include "posenc/positions/functional/resize_positions.h"

#include <c10/util/Exception.h>

#include "core/check.h"
#include "positions/functional/resize_positions/interpolate.h"

namespace posenc::functional {

at::Tensor resize_positions(const at::Tensor& table, int64_t height, int64_t width,
                            PositionResize rule, int64_t prefix, int64_t from_height,
                            int64_t from_width) {
  TORCH_CHECK_TYPE(table.is_floating_point(),
                   "[resize_positions] the table must be floating-point. Got ",
                   table.scalar_type());
  TORCH_CHECK_VALUE(table.dim() == 2 || (table.dim() == 3 && table.size(0) == 1),
                    "[resize_positions] the table must be (R, D) or (1, R, D). Got ",
                    table.sizes());
  check_positive("resize_positions", "height", height);
  check_positive("resize_positions", "width", width);
  const int64_t patches = table.size(-2) - prefix;
  TORCH_CHECK_VALUE(prefix >= 0 && patches > 0, "[resize_positions] prefix must lie in [0, ",
                    table.size(-2), "), the rows of the table. Got ", prefix);
  const bool given = from_height != 0 || from_width != 0;
  if (given) {
    check_positive("resize_positions", "from_height", from_height);
    check_positive("resize_positions", "from_width", from_width);
  }
  const PatchGrid from = given ? PatchGrid{from_height, from_width} : square_grid(patches);
  const PatchGrid to = {height, width};
  if (keeps_positions(rule, patches, from, to, /*square_image=*/height == width)) return table;
  const at::Tensor rows = table.dim() == 3 ? table : table.unsqueeze(0);
  const at::Tensor resized =
      interpolate_positions("resize_positions", rows, rule, prefix, from, to);
  return table.dim() == 3 ? resized : resized.squeeze(0);
}

}  // namespace posenc::functional
