#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/nn/relative_position_bias.h"

namespace posenc POSENC_EXPORT {

/// Options of DocumentPositionBias.
struct DocumentPositionBiasOptions {
  /// Buckets of the places in the text, for a number of heads H.
  DocumentPositionBiasOptions(int64_t num_heads, relative::Buckets places)
      : num_heads_(num_heads), places_(places) {}

  /// Number of heads H.
  TORCH_ARG(int64_t, num_heads);
  /// The buckets of the distance of two tokens in the text.
  TORCH_ARG(relative::Buckets, places);
  /// Those of the distances of their boxes, of the left edges and of the lower ones; none unless
  /// set.
  TORCH_ARG(std::optional<relative::Buckets>, boxes) = std::nullopt;
  /// The factor of the sum: 1 / sqrt(Dh) in LayoutLMv3.
  TORCH_ARG(double, scale) = 1.0;

  POSENC_FIELDS(DocumentPositionBiasOptions, num_heads_, places_, boxes_, scale_);
};

/// The relative position bias of the words of a page, by their places in the text and by their
/// boxes, which is added to the scores of attention:
///
///     bias(b, h, i, j) = scale (places(j - i, h) + (x(x0_j - x0_i, h) + y(y1_j - y1_i, h)))
///
/// As in transformers, the tables get no gradient.
///
/// ```cpp
/// using Options = posenc::DocumentPositionBiasOptions;
/// posenc::DocumentPositionBias bias(
///     Options(12, posenc::relative::Buckets{32, 128}).boxes(posenc::relative::Buckets{64, 256}));
/// auto mask = posenc::AttentionMask::additive(
///     bias->forward(/*length=*/7, torch::zeros({2, 7, 4}, torch::kLong)));
/// ```
///
/// Keys: `places.weight`, `x.weight` and `y.weight` (buckets, H), which are `rel_pos_bias.weight`,
/// `rel_pos_x_bias.weight` and `rel_pos_y_bias.weight` (H, buckets) in LayoutLMv3.
///
/// Errors: those of RelativePositionBias; c10::ValueError for a bbox of another shape, and
/// c10::TypeError for one that is not of integers, which transformers refuses too.
///
/// Source: transformers 5.23, `LayoutLMv3Encoder`.
class DocumentPositionBiasImpl : public Cloneable<DocumentPositionBiasImpl> {
 public:
  /// A module with the given options.
  explicit DocumentPositionBiasImpl(DocumentPositionBiasOptions options_);
  void reset() override;
  /// Draws the tables from N(0, 1).
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the bias (1, H, length, length), or (B, H, length, length) with boxes; bbox: integers
  /// (B, length, 4), zeros unless given.
  torch::Tensor forward(int64_t length, const torch::Tensor& bbox = {});

  DocumentPositionBiasOptions options;   ///< the options given to the constructor
  RelativePositionBias places{nullptr};  ///< of the places in the text
  RelativePositionBias x{nullptr};       ///< of the left edges, with boxes
  RelativePositionBias y{nullptr};       ///< of the lower edges, with boxes

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(torch::Tensor())})
};

TORCH_MODULE(DocumentPositionBias);

}  // namespace posenc
