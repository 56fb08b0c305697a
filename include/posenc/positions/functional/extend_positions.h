#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// How a trained table of positions is made longer, as a start for training on longer sequences.
enum class PositionExtension {
  /// The rows again from the first, as in the conversion of RoBERTa to Longformer.
  Repeat,
  /// Between neighbouring rows, as torch.nn.functional.interpolate(mode="linear") samples them.
  Linear,
  /// The same with align_corners=True: the first and the last row stay what they are.
  LinearAlignCorners,
  /// Row i n + j of a table of n rows is a u_i + (1 - a) u_j with u = (p - a p_0) / (1 - a) and
  /// a = 0.4, which keeps the first n rows: bert4keras' `hierarchical_position`.
  Hierarchical,
};

namespace functional POSENC_EXPORT {

/// Returns a table of `rows` positions made of a shorter one.
///
/// table: (prefix + N, D), of which the first `prefix` rows are no positions (RoBERTa's and BART's
/// have 2) and stay what they are  ->  (rows, D).
///
/// ```cpp
/// torch::Tensor table = torch::randn({512, 8});
/// using posenc::PositionExtension;
/// auto longer = posenc::functional::extend_positions(table, 4096, PositionExtension::Repeat);
/// ```
///
/// Gradients flow to the table.
///
/// Errors: c10::TypeError for a table that is not floating-point; c10::ValueError for another rank,
/// a prefix outside [0, its rows), fewer rows than it has, and more than prefix + N * N rows with
/// PositionExtension::Hierarchical.
///
/// Source: `convert_model_to_long.ipynb` of allenai/longformer; `interpolate` of torch 2.13;
/// `PositionEmbedding` of bert4keras 0.11.
at::Tensor extend_positions(const at::Tensor& table, int64_t rows, PositionExtension rule,
                            int64_t prefix = 0);

}  // namespace functional
}  // namespace posenc
