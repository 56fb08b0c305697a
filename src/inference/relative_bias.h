#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "posenc/nn/relative_position_bias.h"

namespace posenc::inference {

/// The table (rows, H) of a relative position bias, shared with its module. A score's bias depends
/// on the distance of its tokens only, so that a call needs one row for each head, and never the
/// bias of all pairs.
struct RelativeBias {
  at::Tensor table;
  relative::Index index;

  /// (H, 2 length - 1 and room for a panel of queries): entry length - 1 + d is that of a query d
  /// tokens after its key, so that neighbouring queries of a key have neighbouring entries.
  at::Tensor by_distance(int64_t length) const;
  /// (H, length): entry length - 1 - d is that of a query d tokens after its key, so that the last
  /// i + 1 entries are those of query i for all keys up to itself.
  at::Tensor before(int64_t length) const;

 private:
  at::Tensor gather(const at::Tensor& distances, int64_t room) const;
};

/// The number of `bias` among those of the layers so far, where it is added unless one is the same.
std::size_t add_bias(std::vector<RelativeBias>& all, const RelativePositionBiasImpl& bias);

}  // namespace posenc::inference
