// How the embeddings of images are computed by each class of transformers, and by timm.

#include "models/config/setting_names.h"
#include "models/embeddings/presets.h"
#include "posenc/positions/sinusoid/preset.h"

namespace posenc {
namespace {

using vision::MaskRule;
using vision::PositionRows;
using vision::PositionTable;

constexpr int64_t kMostPixels = 1 << 20;
constexpr int64_t kTimmImage = 224, kTimmPatch = 16, kTimmWidth = 768;

// All that ViT's structure reads besides the sizes.
void read_dropout(const Settings& config, VisionEmbeddingsOptions& o) {
  o.dropout(config.probability(hf::kDropout, 0.0));
}

vision::Names clip_names() {
  vision::Names names;
  names.class_token = "class_embedding";
  names.patches = "patch_embedding";
  names.positions = "position_embedding";
  return names;
}

void vision_deit(const Settings& config, VisionEmbeddingsOptions& o) {
  read_dropout(config, o);
  o.distillation_token(true);
}

void vision_ijepa(const Settings& config, VisionEmbeddingsOptions& o) {
  read_dropout(config, o);
  o.class_tokens(0);
}

void vision_beit(const Settings& config, VisionEmbeddingsOptions& o) {
  read_dropout(config, o);
  o.mask_token(config.flag("use_mask_token")).resize_always(true);
  const bool positions = config.flag("use_absolute_position_embeddings");
  if (!positions) o.position_table(PositionTable::None);
}

void vision_beit_cast(const Settings& config, VisionEmbeddingsOptions& o) {
  vision_beit(config, o);
  o.cast_pixels(true);
}

void vision_dinov2(const Settings& config, VisionEmbeddingsOptions& o) {
  read_dropout(config, o);
  o.mask_token(config.flag("use_mask_token")).mask_token_dim(2);
  o.cast_pixels(true).resize_always(true);
}

void vision_dinov2_with_registers(const Settings& config, VisionEmbeddingsOptions& o) {
  read_dropout(config, o);
  o.mask_token(true).mask_token_dim(2).mask_rule(MaskRule::Select);
  o.register_tokens(config.integer("num_register_tokens", 0, kMostPixels));
  o.position_rows(PositionRows::AllButRegisters).cast_pixels(true).resize_always(true);
}

void vision_dinov3(const Settings& config, VisionEmbeddingsOptions& o) {
  o.mask_token(true).mask_rule(MaskRule::Select);
  o.register_tokens(config.integer("num_register_tokens", 0, kMostPixels));
  o.position_table(PositionTable::None).cast_pixels(true);
  vision::Names names;
  names.patches = "patch_embeddings";
  o.names(names);
}

void vision_pixio(const Settings& config, VisionEmbeddingsOptions& o) {
  read_dropout(config, o);
  o.class_tokens(config.integer("n_cls_tokens", 0, kMostPixels));
  o.cast_pixels(true).resize_always(true);
}

void vision_dpt(const Settings& config, VisionEmbeddingsOptions& o) {
  if (config.flag("is_hybrid"))
    config.refuse("is_hybrid", "must be false, as its patches are made by another model");
  read_dropout(config, o);
  o.resize_always(true);
}

void vision_mae(const Settings& config, VisionEmbeddingsOptions& o) {
  o.mask_ratio(config.real("mask_ratio"));
  const int64_t height = o.image_height() / o.patch_height();
  const int64_t width = o.image_width() / o.patch_width();
  if (height == width && height > 0 && o.d_model() % 4 == 0) {
    o.sinusoid(preset("mae_2d", o.d_model(), {{"height", height}, {"cls_token", 1}}));
  }
}

void vision_clip(const Settings& config, VisionEmbeddingsOptions& o) {
  o.names(clip_names()).class_token_dim(1).patch_bias(false).cast_pixels(true);
  o.position_table(PositionTable::Embedding);
  o.layer_norm_eps(config.not_negative(hf::kEpsilon, o.layer_norm_eps()));
}

void vision_blip(const Settings&, VisionEmbeddingsOptions& o) {
  o.names(clip_names()).cast_pixels(true);
}

void vision_siglip(const Settings&, VisionEmbeddingsOptions& o) {
  o.names(clip_names()).class_tokens(0).cast_pixels(true);
  o.position_table(PositionTable::Embedding);
}

void vision_step3p7(const Settings& config, VisionEmbeddingsOptions& o) {
  vision_siglip(config, o);
  o.patch_bias(false);
}

void vision_eomt(const Settings& config, VisionEmbeddingsOptions& o) {
  read_dropout(config, o);
  o.register_tokens(config.integer("num_register_tokens", 0, kMostPixels));
  o.position_table(PositionTable::Embedding).position_rows(PositionRows::Patches);
}

void vision_timm(const Settings& all, VisionEmbeddingsOptions& o) {
  const Settings config = all.has("model_args") ? all.inside("model_args") : all;
  const VisionSides image = vision_sides(config, "img_size", kTimmImage);
  const VisionSides patch = vision_sides(config, "patch_size", kTimmPatch);
  o.image_height(image.height).image_width(image.width);
  o.patch_height(patch.height).patch_width(patch.width);
  o.num_channels(config.integer("in_chans", 3, 1, kMostPixels));
  o.d_model(config.integer("embed_dim", kTimmWidth, 1, kMostPixels));
  o.class_tokens(config.flag("class_token", true) ? 1 : 0);
  const int64_t registers = config.integer("reg_tokens", 0, 0, kMostPixels);
  if (registers > 0) o.register_tokens(registers);
  if (config.flag("no_embed_class", false)) o.position_rows(PositionRows::Patches);
  const std::string table = config.text("pos_embed", "learn");
  if (table != "learn" && table != "none" && !table.empty())
    config.refuse("pos_embed", "must be learn or none");
  if (table != "learn") o.position_table(PositionTable::None);
  const bool norm = config.flag("pre_norm", false);
  o.norm(norm).layer_norm_eps(1e-6).patch_bias(!norm);
  o.dropout(config.real("pos_drop_rate", 0.0));
  o.resize_always(true).whole_patches(true);
  vision::Names names;
  names.register_tokens = "reg_token";
  names.patches = "patch_embed.proj";
  names.positions = "pos_embed";
  names.norm = "norm_pre";
  o.names(names);
}

// Only timm's configurations lack these sizes, which they have by other names.
VisionEmbeddingsOptions built(const Settings& config, PositionResize resize, BuildVision* build) {
  const VisionSides image = vision_sides(config, "image_size", kTimmImage);
  const VisionSides patch = vision_sides(config, "patch_size", kTimmPatch);
  VisionEmbeddingsOptions options(image.height, patch.height,
                                  config.integer("hidden_size", kTimmWidth, 1, kMostPixels));
  options.image_width(image.width).patch_width(patch.width);
  options.num_channels(config.integer("num_channels", 3, 1, kMostPixels));
  options.initializer_range(config.real("initializer_range", 0.02));
  options.resize(resize);
  build(config, options);
  config.placing_errors([&] { options.validate(); });
  return options;
}

}  // namespace

VisionSides vision_sides(const Settings& config, const char* name,
                         std::optional<int64_t> fallback) {
  const nlohmann::json& value = config.value(name);
  if (!value.is_array()) {
    const int64_t side = fallback ? config.integer(name, *fallback, 1, kMostPixels)
                                  : config.integer(name, 1, kMostPixels);
    return {side, side};
  }
  const auto is_side = [](const nlohmann::json& side) {
    return side.is_number_integer() && side >= 1 && side <= kMostPixels;
  };
  if (value.size() != 2 || !is_side(value[0]) || !is_side(value[1]))
    config.refuse(name, "must be an integer or two, height and width");
  return {value[0].get<int64_t>(), value[1].get<int64_t>()};
}

namespace patches {

void clip_without_cast(const Settings& config, VisionEmbeddingsOptions& o) {
  vision_clip(config, o);
  o.cast_pixels(false);
}

void clip_without_positions(const Settings& config, VisionEmbeddingsOptions& o) {
  vision_clip(config, o);
  o.position_table(PositionTable::None);
}

void vit_with_mask(const Settings& config, VisionEmbeddingsOptions& o) {
  read_dropout(config, o);
  o.mask_token(true);
}

}  // namespace patches

std::span<const VisionPresetRow> vision_preset_rows() {
  static constexpr VisionPresetRow kRows[] = {
      // clang-format off
      {"vit", "vit", "ViTEmbeddings", "dropout([class, patches] + positions)",
       PositionResize::Bicubic, read_dropout},
      {"deit", "deit", "DeiTEmbeddings", "dropout([class, distillation, patches] + positions)",
       PositionResize::Bicubic, vision_deit},
      {"ijepa", "ijepa", "IJepaEmbeddings", "dropout(patches + positions)",
       PositionResize::Bicubic, vision_ijepa},
      {"mae", "vit_mae", "ViTMAEEmbeddings", "[class, patches] + frozen sinusoid",
       PositionResize::Bicubic, vision_mae},
      {"beit", "beit", "BeitEmbeddings", "dropout([class, patches] + positions, if there are any)",
       PositionResize::Bicubic, vision_beit},
      {"beit_cast", "data2vec-vision", "Data2VecVisionEmbeddings",
       "beit, of pixels in the dtype of the weight",
       PositionResize::Bicubic, vision_beit_cast},
      {"dinov2", "dinov2", "Dinov2Embeddings", "dropout([class, patches] + positions)",
       PositionResize::BicubicFloat32, vision_dinov2},
      {"dinov2_with_registers", "dinov2_with_registers", "Dinov2WithRegistersEmbeddings",
       "dropout([class, patches] + positions, then registers after the class token)",
       PositionResize::BicubicAntialias, vision_dinov2_with_registers},
      {"tipsv2", "tipsv2_vision_model", "Tipsv2VisionEmbeddings",
       "dinov2_with_registers with another rule",
       PositionResize::BilinearAntialias, vision_dinov2_with_registers},
      {"dinov3", "dinov3_vit", "DINOv3ViTEmbeddings",
       "[class, registers, patches]; the layers rotate",
       PositionResize::Refuse, vision_dinov3},
      {"pixio", "pixio", "PixioEmbeddings", "dropout([several class tokens, patches] + positions)",
       PositionResize::BicubicFloat32, vision_pixio},
      {"dpt", "dpt", "DPTViTEmbeddings", "dropout([class, patches] + positions)",
       PositionResize::Bilinear, vision_dpt},
      {"clip", "clip_vision_model", "CLIPVisionEmbeddings",
       "[class, patches without bias] + positions",
       PositionResize::Bicubic, vision_clip},
      {"blip", "blip_vision_model", "BlipVisionEmbeddings", "[class, patches] + positions",
       PositionResize::Bicubic, vision_blip},
      {"siglip", "siglip_vision_model", "SiglipVisionEmbeddings", "patches + positions",
       PositionResize::Bicubic, vision_siglip},
      {"step3p7", "step3p5_vision", "Step3p7VisionEmbeddings", "patches without bias + positions",
       PositionResize::Bilinear, vision_step3p7},
      {"eomt", "eomt", "EomtEmbeddings", "dropout([class, registers, patches + positions])",
       PositionResize::Refuse, vision_eomt},
      {"timm_vit", "", "VisionTransformer of timm",
       "norm(dropout([class, registers, patches] + positions)), or positions of patches alone",
       PositionResize::BicubicAntialiasKeepEqual, vision_timm},
      // clang-format on
  };
  return kRows;
}

VisionEmbeddingsOptions vision_embeddings_of(const Settings& config, const hf::ModelType& model) {
  const VisionPresetRow& preset = vision_preset_row(model.vision);
  return built(config, preset.resize, model.patches != nullptr ? model.patches : preset.build);
}

VisionEmbeddingsOptions vision_embeddings_of(const Settings& config,
                                             const VisionPresetRow& preset) {
  return built(config, preset.resize, preset.build);
}

}  // namespace posenc
