#pragma once

#include <ATen/core/Tensor.h>

namespace posenc::functional {

/// The two linear maps that TimestepEmbedding applies to a row of the table.
struct TimestepWeights {
  at::Tensor weight0;  ///< (H, D)
  at::Tensor bias0;    ///< (H)
  at::Tensor weight2;  ///< (C, H)
  at::Tensor bias2;    ///< (C)
};

/// Linear(ReLU(Linear(table[t]))) as one value a channel.
///
/// t: (N) or (N, 1), any integer type, in [0, rows); table: (rows, D)  ->  (N, C, 1, 1).
/// Throws c10::ValueError for another rank of t, and as position_embedding() does.
at::Tensor timestep_embedding(const at::Tensor& t, const at::Tensor& table,
                              const TimestepWeights& weights);

/// A timestep's embedding added to an image: image + encoding, broadcast over the pixels.
///
/// image: (C, H, W) or (N, C, H, W); encoding: (N, C, 1, 1)  ->  (N, C, H, W).
/// Throws c10::ValueError where channels or batch do not fit; nothing is broadcast over channels.
at::Tensor add_timestep(const at::Tensor& image, const at::Tensor& encoding);

}  // namespace posenc::functional
