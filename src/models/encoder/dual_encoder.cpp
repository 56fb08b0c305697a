#include "posenc/models/dual_encoder.h"

#include <torch/nn/init.h>

#include <cmath>
#include <ostream>

#include "core/print_fields.h"
#include "positions/nn/weights.h"

namespace posenc {
namespace {

constexpr double kFirstLogitScale = 2.6592;  // log(1 / 0.07), as in CLIP

int64_t vector_width(const char* name, const EncoderOptions& options) {
  TORCH_CHECK_VALUE(options.pooling() != encoder::Pooling::None, "[DualEncoder] the encoder of ",
                    name, " must have a pooling. Got Pooling::None");
  return options.pooler_dim().value_or(options.encoder().layer().d_model());
}

torch::Tensor unit_rows(const torch::Tensor& x) { return x / x.norm(2, {-1}, /*keepdim=*/true); }

}  // namespace

DualEncoderImpl::DualEncoderImpl(DualEncoderOptions options_) : options(std::move(options_)) {
  DualEncoderImpl::reset();
}

void DualEncoderImpl::reset() {
  TORCH_CHECK_VALUE(options.text().embeddings() && options.vision().patches(),
                    "[DualEncoder] text must be an encoder of token ids, and vision one of images");
  const int64_t text = vector_width("texts", options.text());
  const int64_t vision = vector_width("images", options.vision());
  TORCH_CHECK_VALUE(options.projection_dim() || text == vision,
                    "[DualEncoder] without projection_dim both encoders must give vectors of one "
                    "width. Got ",
                    text, " and ", vision);
  text_model = register_module("text_model", Encoder(options.text()));
  vision_model = register_module("vision_model", Encoder(options.vision()));
  if (options.projection_dim()) {
    const auto projection = [&](int64_t from) {
      return make_linear(torch::nn::LinearOptions(from, *options.projection_dim()).bias(false));
    };
    text_projection = register_module("text_projection", projection(text));
    visual_projection = register_module("visual_projection", projection(vision));
  }
  logit_scale = register_parameter("logit_scale", torch::tensor(kFirstLogitScale, torch::kFloat));
  if (options.logit_bias())
    logit_bias = register_parameter("logit_bias", torch::tensor(0.0, torch::kFloat));
}

void DualEncoderImpl::reset_parameters() {
  text_model->reset_parameters();
  vision_model->reset_parameters();
  if (text_projection) text_projection->reset_parameters();
  if (visual_projection) visual_projection->reset_parameters();
  torch::nn::init::constant_(logit_scale, kFirstLogitScale);
  if (logit_bias.defined()) torch::nn::init::zeros_(logit_bias);
}

void DualEncoderImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "DualEncoder", options,
                       DualEncoderOptions(options.text(), options.vision()));
}

torch::Tensor DualEncoderImpl::text_features(const torch::Tensor& ids,
                                             const EncoderInputs& inputs) {
  const torch::Tensor pooled = text_model->forward(ids, inputs).pooled;
  return text_projection ? text_projection->forward(pooled) : pooled;
}

torch::Tensor DualEncoderImpl::image_features(const torch::Tensor& pixel_values) {
  const torch::Tensor pooled = vision_model->forward(pixel_values).pooled;
  return visual_projection ? visual_projection->forward(pooled) : pooled;
}

DualEncoderOutput DualEncoderImpl::forward(const torch::Tensor& ids,
                                           const torch::Tensor& pixel_values,
                                           const EncoderInputs& inputs) {
  DualEncoderOutput out;
  out.text_embeds = unit_rows(text_features(ids, inputs));
  out.image_embeds = unit_rows(image_features(pixel_values));
  out.logits_per_text = out.text_embeds.matmul(out.image_embeds.t()) * logit_scale.exp();
  if (logit_bias.defined()) out.logits_per_text = out.logits_per_text + logit_bias;
  return out;
}

}  // namespace posenc
