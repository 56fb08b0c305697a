#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <utility>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/core/opaque.h"
#include "posenc/export.h"
#include "posenc/positions/functional/rotary.h"
#include "posenc/positions/rotary/rotary.h"

namespace posenc {
struct RotaryPositionEmbedding2dAccess;  // private
}

namespace posenc POSENC_EXPORT {

/// Options of RotaryPositionEmbedding2d.
struct RotaryPositionEmbedding2dOptions {
  /// The default options for a rotary embedding of the axial kinds; see rotary::Planes.
  RotaryPositionEmbedding2dOptions(RotaryOptions rotary)
      : rotary_(std::move(rotary)), head_axis_(rotary_.head_axis()) {}

  /// The rotary embedding: how its angles are computed, and the coordinates of a patch
  /// (RotaryOptions::grid).
  TORCH_ARG(RotaryOptions, rotary);
  /// The order of the axes of q and k; unless set, that of the mirrored system.
  TORCH_ARG(rotary::HeadAxis, head_axis);
  /// Number of tokens before the patches that are not rotated: class and register tokens.
  TORCH_ARG(int64_t, prefix_tokens) = 0;
  /// In training all coordinates are shifted by a random number from [-shift, shift], one for each
  /// axis, drawn in each call; 0: none. In DINOv3 all layers share one draw: call cos_sin() once
  /// and functional::rotary() in each layer. This and the next two are DINOv3's pos_embed_shift,
  /// _jitter and _rescale, with PyTorch's random numbers.
  TORCH_ARG(double, shift) = 0.0;
  /// In training they are multiplied by a random number from [1 / jitter, jitter] for each axis; 0:
  /// none.
  TORCH_ARG(double, jitter) = 0.0;
  /// In training they are multiplied by a random number from [1 / rescale, rescale] that both axes
  /// share; 0: none.
  TORCH_ARG(double, rescale) = 0.0;
  /// The number of grids, those that were used last, whose cos and sin are cached.
  TORCH_ARG(int64_t, cached_grids) = 8;

  POSENC_FIELDS(RotaryPositionEmbedding2dOptions, rotary_, head_axis_, prefix_tokens_, shift_,
                jitter_, rescale_, cached_grids_);
};

struct RotaryPositionEmbedding2dState;
extern template class detail::Opaque<RotaryPositionEmbedding2dState>;

/// Rotates the queries and keys of an image's patches by their places in the grid; for the formula
/// see RotaryOptions, for the places rotary_grid().
///
/// q: (B, H, T, Dh), k: (B, Hkv, T, Dh), or with HeadAxis::AfterLength (B, T, H, Dh) and so on, T =
/// prefix_tokens + frames * height * width, and Llama 4's class token  ->  as q and k.
///
/// ```cpp
/// posenc::RotaryPositionEmbedding2d rotary(
///     posenc::RotaryPositionEmbedding2dOptions(posenc::rotary_preset("dinov3",
///     64)).prefix_tokens(5));
/// auto q = torch::randn({2, 6, 5 + 14 * 14, 64}), k = torch::randn({2, 6, 5 + 14 * 14, 64});
/// auto [rotated_q, rotated_k] = rotary->forward(q, k, 14, 14);
/// ```
///
/// Models that merge blocks of patches have their tokens block by block (rotary::Grid::merge), as
/// they enter the model; one that sorts them into windows (Qwen2.5-VL, Muse) sorts cos_sin() with
/// them. Inkling 2's class token, at (0, 0), is a token of the prefix.
///
/// cos and sin are computed once for each grid, dtype and device, and shared by all modules with
/// equal options as long as one of them lives. forward() may be called from
/// several threads at a time. It waits for a GPU only in training with Precision::Exact, where
/// shift, jitter or rescale draw positions there that have to be read back.
///
/// Keys: none, as in PyTorch, whose `inv_freq` and `freqs_ci` are not persistent here.
///
/// Errors: those of functional::rotary() and rotary_grid(); at construction, c10::ValueError for a
/// rotary embedding that does not have two or three planes, a negative prefix_tokens or
/// cached_grids, a negative shift, and a jitter or rescale below 1.
///
/// Source: the rotary embeddings of vision models in transformers 5.23, such as
/// `DINOv3ViTRopePositionEmbedding`, `Qwen2VLVisionRotaryEmbedding`,
/// `Sam2VideoVisionRotaryEmbedding`.
class RotaryPositionEmbedding2dImpl : public Cloneable<RotaryPositionEmbedding2dImpl> {
 public:
  /// A module for a rotary embedding.
  explicit RotaryPositionEmbedding2dImpl(RotaryOptions rotary)
      : RotaryPositionEmbedding2dImpl(RotaryPositionEmbedding2dOptions(std::move(rotary))) {}
  /// A module with the given options.
  explicit RotaryPositionEmbedding2dImpl(RotaryPositionEmbedding2dOptions options_);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// Returns q and k rotated; either may be undefined. The patches of several frames follow each
  /// other; without a time axis (three planes) all frames have the same angles.
  functional::QueryKey forward(const torch::Tensor& q, const torch::Tensor& k, int64_t height,
                               int64_t width, int64_t frames = 1);

  /// cos and sin of a grid, as the system's class returns them to a layer whose hidden states are
  /// of type `dtype`: (frames * height * width, W), without the tokens of the prefix.
  RotaryCosSin cos_sin(int64_t height, int64_t width, int64_t frames = 1,
                       torch::Dtype dtype = torch::kFloat, torch::Device device = torch::kCPU);

  RotaryPositionEmbedding2dOptions options;  ///< the options given to the constructor

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({4, torch::nn::AnyValue(int64_t{1})})

 private:
  friend struct RotaryPositionEmbedding2dAccess;

  bool is_augmented() const;
  RotaryCosSin rows(int64_t height, int64_t width, int64_t frames, torch::Dtype dtype,
                    torch::Device device);
  RotaryCosSin computed(at::IntArrayRef sizes, torch::Dtype dtype, torch::Device device) const;

  detail::Opaque<RotaryPositionEmbedding2dState> state_;
};

TORCH_MODULE(RotaryPositionEmbedding2d);

}  // namespace posenc
