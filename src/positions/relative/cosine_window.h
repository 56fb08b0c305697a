#pragma once

#include "posenc/positions/relative/window.h"

namespace posenc::relative {

/// exp(logit_scale), at most 100.
at::Tensor cosine_scale(const at::Tensor& logit_scale);

/// Vectors of the length 1, along the last axis.
at::Tensor normalized(const at::Tensor& x);

/// The cosines of queries and keys times the cosine_scale() of each head. q, k: (..., H, N, D),
/// logit_scale: (H, 1, 1)  ->  (..., H, N, N).
at::Tensor cosine_scores(const at::Tensor& q, const at::Tensor& k, const at::Tensor& logit_scale);

/// The inputs of the network of continuous_position_bias(), (1, 2 h - 1, 2 w - 1, 2), in the dtype
/// and on the device of its first weight.
at::Tensor continuous_inputs(Grid window, Grid pretrained, LogCoordinates coordinates,
                             const at::Tensor& first_weight);

/// The bias of a window whose table is what a small network, linear(relu(linear(x))), makes of its
/// relative_log_coordinates(): 16 sigmoid(entry), (1, H, N, N).
at::Tensor continuous_position_bias(Grid window, Grid pretrained, LogCoordinates coordinates,
                                    const at::Tensor& first_weight, const at::Tensor& first_bias,
                                    const at::Tensor& second_weight);

}  // namespace posenc::relative
