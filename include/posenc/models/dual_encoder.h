#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/models/encoder.h"

namespace posenc POSENC_EXPORT {

/// Options of DualEncoder.
struct DualEncoderOptions {
  /// A pair of an encoder of token ids and one of images.
  DualEncoderOptions(EncoderOptions text, EncoderOptions vision)
      : text_(std::move(text)), vision_(std::move(vision)) {}

  /// The encoder of token ids.
  TORCH_ARG(EncoderOptions, text);
  /// The encoder of images.
  TORCH_ARG(EncoderOptions, vision);
  /// Width to which both vectors are projected; nothing in SigLIP, where they are of one width.
  TORCH_ARG(std::optional<int64_t>, projection_dim) = std::nullopt;
  /// Whether a trained number is added to the logits: SigLIP.
  TORCH_ARG(bool, logit_bias) = false;

  POSENC_FIELDS(DualEncoderOptions, text_, vision_, projection_dim_, logit_bias_);
};

/// The result of a DualEncoder.
struct DualEncoderOutput {
  torch::Tensor text_embeds;      ///< (N, P), of length 1
  torch::Tensor image_embeds;     ///< (M, P), of length 1
  torch::Tensor logits_per_text;  ///< (N, M), the cosines * exp(logit_scale) + logit_bias
};

/// An encoder of texts and one of images whose vectors can be compared: CLIP, SigLIP.
///
/// ids: (N, L), pixel_values: (M, C, H, W)  ->  DualEncoderOutput.
///
/// ```cpp
/// auto clip = posenc::load_dual_encoder("models/clip-vit-base-patch32");
/// auto ids = torch::tensor({{1, 5, 7}, {1, 9, 7}});  // of two texts, from your tokenizer
/// auto out = clip->forward(ids, torch::randn({1, 3, 224, 224}));
/// auto probabilities = out.logits_per_text.t().softmax(1);  // of each text, for each image
/// ```
///
/// Keys: `text_model.*`, `vision_model.*` (Encoder), with a projection `text_projection.weight` and
/// `visual_projection.weight`, `logit_scale`, with logit_bias `logit_bias`.
///
/// Errors: those of Encoder; c10::ValueError for encoders that give no pooled output of one width.
///
/// Source: `CLIPModel`, `ChineseCLIPModel` and `SiglipModel` of transformers 5.23.
class DualEncoderImpl : public Cloneable<DualEncoderImpl> {
 public:
  /// A module with the given options.
  explicit DualEncoderImpl(DualEncoderOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Encodes texts and images, and compares each with each.
  DualEncoderOutput forward(const torch::Tensor& ids, const torch::Tensor& pixel_values,
                            const EncoderInputs& inputs = {});
  /// The projected vectors of texts, (N, P), of any length: get_text_features in transformers.
  torch::Tensor text_features(const torch::Tensor& ids, const EncoderInputs& inputs = {});
  /// The projected vectors of images, (M, P), of any length: get_image_features in transformers.
  torch::Tensor image_features(const torch::Tensor& pixel_values);

  DualEncoderOptions options;                    ///< the options given to the constructor
  Encoder text_model{nullptr};                   ///< the encoder of token ids
  Encoder vision_model{nullptr};                 ///< the encoder of images
  torch::nn::Linear text_projection{nullptr};    ///< with projection_dim
  torch::nn::Linear visual_projection{nullptr};  ///< with projection_dim
  torch::Tensor logit_scale;                     ///< a number, or (1), as the file has it
  torch::Tensor logit_bias;                      ///< the same, with .logit_bias(true)

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(EncoderInputs())})
};

TORCH_MODULE(DualEncoder);

/// The values of `model_type` that load_dual_encoder() knows, sorted.
std::vector<std::string> dual_encoder_model_types();

/// Loads both encoders and the projections of a folder that Hugging Face's save_pretrained() wrote,
/// in eval mode and float32. Images are tensors of pixels, scaled and normalised as the model's
/// preprocessor_config.json says.
///
/// Errors: those of load_encoder(), whose `options` it takes; c10::ValueError for a model that is
/// no pair, and for one whose encoder of images posenc lacks, by its name.
DualEncoder load_dual_encoder(const std::string& folder, const LoadOptions& options = {});

}  // namespace posenc
