// load_dual_encoder().

#include <algorithm>

#include "io/base/file.h"
#include "io/load/source.h"
#include "models/encoder/config.h"
#include "models/encoder/folder.h"
#include "models/model_folder.h"
#include "posenc/core/skip_init.h"
#include "posenc/models/dual_encoder.h"

namespace posenc {
namespace {

constexpr const char* kLoadDual = "load_dual_encoder";
constexpr int64_t kWidestVector = 1 << 20;

// A pair as it is described, without the encoders' own poolings of models that use another.
struct DualConfig {
  EncoderConfig text, vision;
  DualEncoderOptions options;
};

DualConfig read_dual_config(const Settings& config) {
  const std::string type = config.text("model_type", "");
  const auto known = dual_encoder_model_types();
  if (std::find(known.begin(), known.end(), type) == known.end()) {
    hf::refuse_model_type(config.where(), "model_type must be that of a pair of encoders", type,
                          known);
  }
  EncoderConfig text = read_encoder_config(config, "text_config");
  EncoderConfig vision = read_encoder_config(config, "vision_config");
  // ChineseCLIPModel projects the first row, and has no pooler.
  if (text.options.pooling() == encoder::Pooling::TanhOfFirst)
    text.options.pooling(encoder::Pooling::First);
  DualEncoderOptions options(text.options, vision.options);
  if (vision.options.pooling() == encoder::Pooling::Attention) {
    options.logit_bias(true);
  } else {
    options.projection_dim(config.of(type).whole("projection_dim", 1, kWidestVector));
  }
  return {text, vision, options};
}

void copy_from(const io::TensorSource& source, const char* name, torch::Tensor& target) {
  const auto* const entry = find_entry(source, name);
  if (entry == nullptr) throw missing_tensor(name);
  // Numbers may be (1) in files.
  if (target.dim() == 0 && entry->sizes == std::vector<int64_t>{1})
    target.set_data(target.reshape({1}));
  if (target.sizes() != entry->sizes) {
    throw WeightsError(WeightsErrorCode::ShapeMismatch,
                       c10::str("must have the shape ", target.sizes(),
                                ", as config.json says. Got ", at::IntArrayRef(entry->sizes)))
        .in_tensor(name);
  }
  const torch::NoGradGuard no_grad;
  source.copy_to(static_cast<std::size_t>(entry - source.entries().data()), target);
}

}  // namespace

std::vector<std::string> dual_encoder_model_types() {
  return {"chinese_clip", "clip", "clipseg", "siglip"};
}

DualEncoder load_dual_encoder(const std::string& folder) {
  DualConfig config = io::in_context(
      kLoadDual, folder, [&] { return read_dual_config(model_config(kLoadDual, folder)); });
  const std::string path = weights_in(kLoadDual, folder);
  return io::in_context(kLoadDual, path, [&] {
    const io::FileSource source(path);
    const LoadOptions usual;
    const auto tower = [&](const EncoderConfig& one) {
      EncoderFolder open(kLoadDual, folder, usual, one, path, source);
      return encoder_with_its_pooler(open);
    };
    Encoder text = tower(config.text);
    Encoder vision = tower(config.vision);
    config.options.text(text->options).vision(vision->options);  // as the weights have them
    DualEncoder model{nullptr};
    {
      const SkipInit skip;
      model = DualEncoder(config.options);
    }
    model->text_model = model->replace_module("text_model", text);
    model->vision_model = model->replace_module("vision_model", vision);
    if (config.options.projection_dim()) {
      copy_from(source, "text_projection.weight", model->text_projection->weight);
      copy_from(source, "visual_projection.weight", model->visual_projection->weight);
    }
    copy_from(source, "logit_scale", model->logit_scale);
    if (model->logit_bias.defined()) copy_from(source, "logit_bias", model->logit_bias);
    model->eval();
    return model;
  });
}

}  // namespace posenc
