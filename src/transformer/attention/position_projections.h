#pragma once

#include "posenc/transformer/attention/disentangled_attention.h"

namespace posenc {

/// A linear layer of the rows of a table; its weight is undefined where there is none.
struct PositionProjection {
  at::Tensor weight, bias;
};

/// What makes DisentangledAttentionImpl::position_heads() of a table (R, E).
struct PositionProjections {
  PositionProjection keys, queries;
};

/// Those of an attention.
///
/// Errors: those of position_heads().
PositionProjections position_projections(const DisentangledAttentionImpl& attention,
                                         const at::Tensor& table);

}  // namespace posenc
