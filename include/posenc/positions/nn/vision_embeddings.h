#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include <string>

#include "posenc/core/cloneable.h"
#include "posenc/export.h"
#include "posenc/positions/nn/layer_norm.h"
#include "posenc/positions/nn/vision_embeddings_options.h"
#include "posenc/positions/relative/window.h"

namespace posenc POSENC_EXPORT {

/// The convolution that makes a vector of each patch of an image; its stride is its size.
///
/// pixel_values: (B, C, H, W)  ->  (B, N, D), patch by patch along the rows.
///
/// Keys: `weight` (D, C, patch_height, patch_width) and, if the options have a bias, `bias` (D),
/// below `path`, module names joined by dots.
///
/// Source: `ViTPatchEmbeddings` of transformers 5.23.
class PatchProjectionImpl : public Cloneable<PatchProjectionImpl> {
 public:
  /// The projection of these options, whose tensors are below `path`, or here if that is empty.
  PatchProjectionImpl(VisionEmbeddingsOptions options_, std::string path_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the vectors of the patches.
  torch::Tensor forward(const torch::Tensor& pixel_values);

  /// (D, C, patch_height, patch_width).
  const torch::Tensor& weight() const;
  /// (D), undefined with patch_bias(false).
  const torch::Tensor& bias() const;

  VisionEmbeddingsOptions options;  ///< the options given to the constructor
  std::string path;                 ///< the names of the modules that the tensors are in

 private:
  std::shared_ptr<PatchProjectionImpl> inner_;
  torch::Tensor weight_, bias_;
};

TORCH_MODULE(PatchProjection);

/// Inputs of vision embeddings besides the pixels; all are optional.
struct VisionEmbeddingsInputs {
  /// True for patches that are replaced by the mask token: (B, N), bool.
  TORCH_ARG(torch::Tensor, bool_masked_pos) = {};
  /// Noise that selects the patches to drop, as in MAE's training: the patches with the smallest
  /// values are kept, in that order, except for a fraction mask_ratio of all. (B, N),
  /// floating-point.
  TORCH_ARG(torch::Tensor, noise) = {};
};

/// The embeddings of a vision transformer: the projected patches of an image after class and
/// register tokens, plus trained positions.
///
/// pixel_values: (B, C, H, W)  ->  (B, T, d_model), T tokens: class tokens, distillation token,
/// registers, then the patches along the rows.
///
/// Images of another size than the model's have their positions resized by options.resize(), as the
/// named system does. The results are bit-identical to the system's, and the gradients to
/// autograd's.
///
/// ```cpp
/// posenc::VisionEmbeddings embeddings(posenc::vision_embeddings_options_from_hf(
///     R"({"model_type": "vit", "image_size": 32, "patch_size": 8, "hidden_size": 16})"));
/// torch::Tensor tokens = embeddings->forward(torch::randn({2, 3, 32, 32}));  // (2, 17, 16)
/// ```
///
/// Keys: those in `names`, by default `cls_token` (1, n, D), `distillation_token` (1, 1, D),
/// `register_tokens` (1, n, D), `mask_token` (1, 1, D), `position_embeddings` (1, R, D) or
/// `position_embeddings.weight` (R, D) or (1, h, w, D), `patch_embeddings.projection.weight` and
/// `.bias`, `pre_layrnorm.weight` and `.bias`, as far as the options require them.
///
/// Initial weights: truncated normal for weights, class tokens and positions, zeros for the rest.
///
/// Errors: c10::TypeError for pixels, masks and noise of another dtype; c10::ValueError for shapes,
/// channels and sizes that do not match the options, for a mask without a mask token, and those of
/// functional::resize_positions().
///
/// Source: the `...Embeddings` classes of transformers 5.23, such as `ViTEmbeddings`;
/// `VisionTransformer` of timm 1.0.
class VisionEmbeddingsImpl : public Cloneable<VisionEmbeddingsImpl> {
 public:
  /// A module with the given options.
  explicit VisionEmbeddingsImpl(VisionEmbeddingsOptions options_);

  void reset() override;
  /// Draws new initial weights; a sinusoidal table stays.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the tokens of the images.
  torch::Tensor forward(const torch::Tensor& pixel_values,
                        const VisionEmbeddingsInputs& inputs = {});

  /// Returns the patches of images of this size in pixels.
  relative::Grid grid(int64_t height, int64_t width) const;

  /// Returns the positions that are added for images of this size in pixels, (1, R, D); undefined
  /// if there are none.
  torch::Tensor positions(int64_t height, int64_t width) const;

  VisionEmbeddingsOptions options;                   ///< the options given to the constructor
  PatchProjection patches{nullptr};                  ///< the projection of the patches
  torch::Tensor class_token;                         ///< undefined if there is none, as the others
  torch::Tensor distillation_token;                  ///< (1, 1, D)
  torch::Tensor register_tokens;                     ///< (1, n, D)
  torch::Tensor mask_token;                          ///< (1, 1, D) or (1, D)
  torch::Tensor position_table;                      ///< (1, R, D) or (1, h, w, D), a Parameter
  torch::nn::Embedding position_embedding{nullptr};  ///< for PositionTable::Embedding
  LayerNorm norm{nullptr};                           ///< the norm
  torch::nn::Dropout dropout{nullptr};               ///< the dropout

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(VisionEmbeddingsInputs())})

 private:
  void register_positions();
};

TORCH_MODULE(VisionEmbeddings);

}  // namespace posenc
