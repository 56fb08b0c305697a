#pragma once

#include <cstdint>

#include "cli/plot_scripts.h"

namespace posenc::cli {

/// A rotary embedding for contexts `factor` times the original length.
struct RotaryPlot {
  int64_t dim = 128;       ///< channels of a head
  int64_t length = 32768;  ///< the largest distance: factor times the original length
  double base = 10000.0, factor = 8.0;
};

/// How the score of a query with an equal key falls with their distance, for each scaling of the
/// frequencies, compared with the unscaled one.
Figure rotary_decay(const RotaryPlot& plot);

}  // namespace posenc::cli
