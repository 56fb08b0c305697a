#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/export.h"

namespace posenc {
namespace functional POSENC_EXPORT {

/// The weights of the two linear layers that TimestepEmbedding applies to a row of the table.
struct TimestepWeights {
  at::Tensor weight0;  ///< (H, D)
  at::Tensor bias0;    ///< (H)
  at::Tensor weight2;  ///< (C, H)
  at::Tensor bias2;    ///< (C)
};

/// Linear(ReLU(Linear(table[t]))), one value per channel.
///
/// t: (N) or (N, 1), any integer type, in [0, rows); table: (rows, D)  ->  (N, C, 1, 1).
///
/// Errors: c10::ValueError for a wrong rank of t; those of position_embedding().
at::Tensor timestep_embedding(const at::Tensor& t, const at::Tensor& table,
                              const TimestepWeights& weights);

/// image + encoding, broadcast over the pixels but not over the channels.
///
/// image: (C, H, W) or (N, C, H, W); encoding: (N, C, 1, 1)  ->  (N, C, H, W).
///
/// Errors: c10::ValueError if the numbers of channels or the batch sizes differ.
at::Tensor add_timestep(const at::Tensor& image, const at::Tensor& encoding);

}  // namespace functional
}  // namespace posenc
