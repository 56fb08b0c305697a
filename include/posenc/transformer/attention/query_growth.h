#pragma once

#include <cstdint>

#include "posenc/core/fields.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// The factor of a query at a position: 1 + beta log(1 + floor(position / length)), after it is
/// rotated: Ministral 3.
struct QueryGrowth {
  double beta = 0.0;   ///< how fast it grows
  int64_t length = 1;  ///< the positions of factor 1; at least 1

  /// The factor of a query at this position.
  float factor(int64_t position) const;

  POSENC_FIELDS(QueryGrowth, beta, length);
};

}  // namespace posenc
