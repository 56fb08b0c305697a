#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <optional>
#include <string>

#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/functional/resize_positions.h"
#include "posenc/positions/sinusoid/options.h"

namespace posenc POSENC_EXPORT {

/// The places in which the vision embeddings of real systems differ.
namespace vision {

/// How the table of positions is registered.
enum class PositionTable {
  None,       ///< none: the layers use rotary embeddings, as in DINOv3
  Parameter,  ///< a parameter (1, R, D), as in ViT
  Embedding,  ///< a module with a `weight` (R, D), as in CLIP
};

/// Which tokens have a row in the table of positions.
enum class PositionRows {
  AllTokens,        ///< all, as in ViT and DeiT
  AllButRegisters,  ///< as in DINOv2 with registers
  Patches,          ///< the patches alone, as in SigLIP and timm's `no_embed_class`
};

/// How the mask token replaces patches.
enum class MaskRule {
  Blend,   ///< patch * (1 - mask) + token * mask, as in ViT: a NaN of a masked patch remains
  Select,  ///< one of the two, as in DINOv2 with registers
};

/// The names under which the embeddings register their tensors and modules. A dot leads into a
/// module.
struct Names {
  std::string class_token = "cls_token";                  ///< the class token
  std::string distillation_token = "distillation_token";  ///< DeiT's second class token
  std::string register_tokens = "register_tokens";        ///< the register tokens
  std::string mask_token = "mask_token";                  ///< the token in place of masked patches
  std::string patches = "patch_embeddings.projection";    ///< the projection of the patches
  std::string positions = "position_embeddings";          ///< the table of positions
  std::string norm = "pre_layrnorm";                      ///< the norm; CLIP's files spell it so

  POSENC_FIELDS(Names, class_token, distillation_token, register_tokens, mask_token, patches,
                positions, norm);
};

}  // namespace vision

/// Options of VisionEmbeddings. vision_embeddings_preset() has those of real systems.
struct VisionEmbeddingsOptions {
  /// The options of ViT for square images and patches.
  VisionEmbeddingsOptions(int64_t image_size, int64_t patch_size, int64_t d_model)
      : image_height_(image_size),
        image_width_(image_size),
        patch_height_(patch_size),
        patch_width_(patch_size),
        d_model_(d_model) {}

  /// Height of the images that the positions are for, in pixels.
  TORCH_ARG(int64_t, image_height);
  /// Width of these images.
  TORCH_ARG(int64_t, image_width);
  /// Height of a patch, in pixels.
  TORCH_ARG(int64_t, patch_height);
  /// Width of a patch.
  TORCH_ARG(int64_t, patch_width);
  /// Width of the result.
  TORCH_ARG(int64_t, d_model);
  /// Channels of an image.
  TORCH_ARG(int64_t, num_channels) = 3;
  /// Whether the projection of the patches has a bias.
  TORCH_ARG(bool, patch_bias) = true;
  /// Whether pixels are converted to the dtype of the weight; otherwise another dtype is an error.
  TORCH_ARG(bool, cast_pixels) = false;
  /// Refuses images that are not a whole number of patches; otherwise the remaining pixels are
  /// ignored.
  TORCH_ARG(bool, whole_patches) = false;
  /// Adds zeros below and on the right of images that are not a whole number of patches: Swin.
  TORCH_ARG(bool, pad_patches) = false;
  /// Refuses images of another size than the model's: SAM.
  TORCH_ARG(bool, own_size) = false;
  /// Number of class tokens.
  TORCH_ARG(int64_t, class_tokens) = 1;
  /// Axes of the class token: (1, n, D), or (D) with 1.
  TORCH_ARG(int64_t, class_token_dim) = 3;
  /// Whether a distillation token is next.
  TORCH_ARG(bool, distillation_token) = false;
  /// Number of register tokens, which follow. With 0 an empty parameter is registered.
  TORCH_ARG(std::optional<int64_t>, register_tokens) = std::nullopt;
  /// Whether there is a mask token.
  TORCH_ARG(bool, mask_token) = false;
  /// Axes of the mask token: (1, 1, D), or (1, D) with 2.
  TORCH_ARG(int64_t, mask_token_dim) = 3;
  /// How it replaces patches.
  TORCH_ARG(vision::MaskRule, mask_rule) = vision::MaskRule::Blend;
  /// The table of positions.
  TORCH_ARG(vision::PositionTable, position_table) = vision::PositionTable::Parameter;
  /// Axes of a table that is a parameter: (1, R, D), or (1, h, w, D) with 4, of patches alone.
  TORCH_ARG(int64_t, position_table_dim) = 3;
  /// The tokens that have positions.
  TORCH_ARG(vision::PositionRows, position_rows) = vision::PositionRows::AllTokens;
  /// A frozen sinusoidal table in place of a trained one, such as
  /// preset("mae_2d", 768, {{"height", 14}, {"cls_token", 1}}).
  TORCH_ARG(std::optional<SinusoidOptions>, sinusoid) = std::nullopt;
  /// How the positions are resized for an image of another size.
  TORCH_ARG(PositionResize, resize) = PositionResize::Bicubic;
  /// Lets `resize` decide even for images of the model's own size whether the table is used
  /// unchanged. In DINOv2 and BEiT it is not if that size is not square, since they assume a square
  /// table.
  TORCH_ARG(bool, resize_always) = false;
  /// The fraction of the patches that is dropped if VisionEmbeddingsInputs::noise is given, as in
  /// MAE.
  TORCH_ARG(double, mask_ratio) = 0.75;
  /// Probability of zeroing an element in training, in [0, 1).
  TORCH_ARG(double, dropout) = 0.0;
  /// Whether a norm comes last, as in the models of CLIP.
  TORCH_ARG(bool, norm) = false;
  /// Whether that norm is of the patches, before they get positions, as in Swin.
  TORCH_ARG(bool, patch_norm) = false;
  /// Added to the variance in the norm.
  TORCH_ARG(double, layer_norm_eps) = 1e-5;
  /// Standard deviation of the initial weights.
  TORCH_ARG(double, initializer_range) = 0.02;
  /// The names of the tensors and modules.
  TORCH_ARG(vision::Names, names) = {};

 public:
  /// Rows of the table of positions before those of the patches.
  int64_t position_prefix() const;
  /// Throws c10::ValueError, beginning with `[VisionEmbeddings]`, for contradictory options.
  void validate() const;

  POSENC_FIELDS(VisionEmbeddingsOptions, image_height_, image_width_, patch_height_, patch_width_,
                d_model_, num_channels_, patch_bias_, cast_pixels_, whole_patches_, pad_patches_,
                own_size_, class_tokens_, class_token_dim_, distillation_token_, register_tokens_,
                mask_token_, mask_token_dim_, mask_rule_, position_table_, position_table_dim_,
                position_rows_, sinusoid_, resize_, resize_always_, mask_ratio_, norm_, patch_norm_,
                layer_norm_eps_);
  POSENC_TRAINING_FIELDS(dropout_, initializer_range_, names_);
};

}  // namespace posenc
