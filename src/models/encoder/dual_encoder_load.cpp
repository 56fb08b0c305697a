// load_dual_encoder().

#include <algorithm>

#include "models/config/model_folder.h"
#include "models/encoder/config.h"
#include "models/encoder/folder.h"
#include "models/lora/adapted_folder.h"
#include "posenc/core/skip_init.h"
#include "posenc/models/dual_encoder.h"
#include "weights/common/file.h"
#include "weights/load/source.h"

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
    options.projection_dim(config.of(type).integer("projection_dim", 1, kWidestVector));
  }
  return {text, vision, options};
}

void copy_from(const io::TensorSource& source, const std::string& name, torch::Tensor& target) {
  const auto* const entry = find_entry(source, name);
  if (entry == nullptr) throw missing_tensor(source, name);
  io::refuse_unreadable_entry(*entry);
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

DualEncoder load_dual_encoder(const std::string& folder, const LoadOptions& options) {
  check_folder_options(kLoadDual, options);
  refuse_adapters(kLoadDual, options, "load_encoder() loads each encoder of a pair with them");
  DualConfig config = io::in_context(
      kLoadDual, folder, [&] { return read_dual_config(model_config(kLoadDual, folder)); });
  const std::string path = weights_in(kLoadDual, folder);
  return io::in_context(kLoadDual, path, [&] {
    const io::FileSource file(path);
    const io::RenamedSource source(file, options.prefix(), options.key_map());
    Leftovers leftovers(source, options,
                        {config.text.whole.text("model_type", ""), config.text.model.type,
                         config.vision.model.type});
    leftovers.add_unused_patterns(source);
    const auto tower = [&](const EncoderConfig& one, const char* part) {
      EncoderFolder open(kLoadDual, folder, options, one, path, source, leftovers);
      return encoder_with_its_pooler(open, part);
    };
    Encoder text = tower(config.text, "text_model.");
    Encoder vision = tower(config.vision, "vision_model.");
    config.options.text(text->options).vision(vision->options);  // as the weights have them
    DualEncoder model{nullptr};
    {
      const SkipInit skip;
      model = DualEncoder(config.options);
    }
    model->text_model = model->replace_module("text_model", text);
    model->vision_model = model->replace_module("vision_model", vision);
    const auto read = [&](const char* own, torch::Tensor& target) {
      const std::string name = options.prefix() + own;
      copy_from(source, name, target);
      leftovers.add_read(name, own);
    };
    if (config.options.projection_dim()) {
      read("text_projection.weight", model->text_projection->weight);
      read("visual_projection.weight", model->visual_projection->weight);
    }
    read("logit_scale", model->logit_scale);
    if (model->logit_bias.defined()) read("logit_bias", model->logit_bias);
    leftovers.finish();
    model->eval();
    return model;
  });
}

}  // namespace posenc
