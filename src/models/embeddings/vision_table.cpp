// The structure of each system's vision embeddings, and the model types of transformers that have
// it.

#include <cmath>

#include "models/embeddings/vision_table.h"
#include "models/hf/setting_names.h"
#include "posenc/sinusoid/preset.h"

namespace posenc {
namespace {

using vision::MaskRule;
using vision::PositionRows;
using vision::PositionTable;

constexpr int64_t kMostClassTokens = 1 << 20;

void take_dropout(const Settings& config, VisionEmbeddingsOptions& o) {
  o.dropout(config.probability(hf::kDropout, 0.0));
}

void vision_vit(const Settings& config, VisionEmbeddingsOptions& o) { take_dropout(config, o); }

void vision_deit(const Settings& config, VisionEmbeddingsOptions& o) {
  vision_vit(config, o);
  o.distillation_token(true);
}

void vision_ijepa(const Settings& config, VisionEmbeddingsOptions& o) {
  vision_vit(config, o);
  o.class_tokens(0);
}

void vision_beit(const Settings& config, VisionEmbeddingsOptions& o) {
  take_dropout(config, o);
  o.mask_token(config.flag("use_mask_token")).resize_always(true);
  const bool positions = config.flag("use_absolute_position_embeddings");
  if (!positions) o.position_table(PositionTable::None);
}

void vision_beit_cast(const Settings& config, VisionEmbeddingsOptions& o) {
  vision_beit(config, o);
  o.cast_pixels(true);
}

void vision_dinov2(const Settings& config, VisionEmbeddingsOptions& o) {
  take_dropout(config, o);
  o.mask_token(config.flag("use_mask_token")).mask_token_dim(2);
  o.cast_pixels(true).resize_always(true);
}

void vision_dinov2_with_registers(const Settings& config, VisionEmbeddingsOptions& o) {
  take_dropout(config, o);
  o.mask_token(true).mask_token_dim(2).mask_rule(MaskRule::Select);
  o.register_tokens(config.whole("num_register_tokens", 0, kMostClassTokens));
  o.position_rows(PositionRows::AllButRegisters).cast_pixels(true).resize_always(true);
}

void vision_dinov3(const Settings& config, VisionEmbeddingsOptions& o) {
  o.mask_token(true).mask_rule(MaskRule::Select);
  o.register_tokens(config.whole("num_register_tokens", 0, kMostClassTokens));
  o.position_table(PositionTable::None).cast_pixels(true);
  vision::Names names;
  names.patches = "patch_embeddings";
  o.names(names);
}

void vision_pixio(const Settings& config, VisionEmbeddingsOptions& o) {
  take_dropout(config, o);
  o.class_tokens(config.whole("n_cls_tokens", 0, kMostClassTokens));
  o.cast_pixels(true).resize_always(true);
}

void vision_dpt(const Settings& config, VisionEmbeddingsOptions& o) {
  if (config.flag("is_hybrid"))
    config.refuse("is_hybrid", "must be false, as its patches are made by another model");
  take_dropout(config, o);
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

vision::Names clip_names() {
  vision::Names names;
  names.class_token = "class_embedding";
  names.patches = "patch_embedding";
  names.positions = "position_embedding";
  return names;
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
  take_dropout(config, o);
  o.register_tokens(config.whole("num_register_tokens", 0, kMostClassTokens));
  o.position_table(PositionTable::Embedding).position_rows(PositionRows::Patches);
}

void vision_timm(const Settings& all, VisionEmbeddingsOptions& o) {
  const Settings config = all.has("model_args") ? all.inside("model_args") : all;
  const VisionSides image = vision_sides(config, "img_size", 224);
  const VisionSides patch = vision_sides(config, "patch_size", 16);
  o.image_height(image.height).image_width(image.width);
  o.patch_height(patch.height).patch_width(patch.width);
  o.num_channels(config.whole("in_chans", 3, 1, kMostClassTokens));
  o.d_model(config.whole("embed_dim", 768, 1, kMostClassTokens));
  o.class_tokens(config.flag("class_token", true) ? 1 : 0);
  const int64_t registers = config.whole("reg_tokens", 0, 0, kMostClassTokens);
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

void without_cast(const Settings&, VisionEmbeddingsOptions& o) { o.cast_pixels(false); }

void with_mask(const Settings&, VisionEmbeddingsOptions& o) { o.mask_token(true); }

void without_positions(const Settings&, VisionEmbeddingsOptions& o) {
  o.position_table(PositionTable::None);
}

}  // namespace

const std::vector<VisionPresetRow>& vision_preset_table() {
  static const std::vector<VisionPresetRow> table = {
      // clang-format off
      {"vit", "ViTEmbeddings", "dropout([class, patches] + positions)",
       PositionResize::Bicubic, vision_vit},
      {"deit", "DeiTEmbeddings", "dropout([class, distillation, patches] + positions)",
       PositionResize::Bicubic, vision_deit},
      {"ijepa", "IJepaEmbeddings", "dropout(patches + positions)",
       PositionResize::Bicubic, vision_ijepa},
      {"mae", "ViTMAEEmbeddings", "[class, patches] + frozen sinusoid",
       PositionResize::Bicubic, vision_mae},
      {"beit", "BeitEmbeddings", "dropout([class, patches] + positions, if there are any)",
       PositionResize::Bicubic, vision_beit},
      {"beit_cast", "Data2VecVisionEmbeddings", "beit, of pixels in the dtype of the weight",
       PositionResize::Bicubic, vision_beit_cast},
      {"dinov2", "Dinov2Embeddings", "dropout([class, patches] + positions)",
       PositionResize::BicubicFloat32, vision_dinov2},
      {"dinov2_with_registers", "Dinov2WithRegistersEmbeddings",
       "dropout([class, patches] + positions, then registers after the class token)",
       PositionResize::BicubicAntialias, vision_dinov2_with_registers},
      {"tipsv2", "Tipsv2VisionEmbeddings", "dinov2_with_registers with another rule",
       PositionResize::BilinearAntialias, vision_dinov2_with_registers},
      {"dinov3", "DINOv3ViTEmbeddings", "[class, registers, patches]; the layers rotate",
       PositionResize::Refuse, vision_dinov3},
      {"pixio", "PixioEmbeddings", "dropout([several class tokens, patches] + positions)",
       PositionResize::BicubicFloat32, vision_pixio},
      {"dpt", "DPTViTEmbeddings", "dropout([class, patches] + positions)",
       PositionResize::Bilinear, vision_dpt},
      {"clip", "CLIPVisionEmbeddings", "[class, patches without bias] + positions",
       PositionResize::Bicubic, vision_clip},
      {"blip", "BlipVisionEmbeddings", "[class, patches] + positions",
       PositionResize::Bicubic, vision_blip},
      {"siglip", "SiglipVisionEmbeddings", "patches + positions",
       PositionResize::Bicubic, vision_siglip},
      {"step3p7", "Step3p7VisionEmbeddings", "patches without bias + positions",
       PositionResize::Bilinear, vision_step3p7},
      {"eomt", "EomtEmbeddings", "dropout([class, registers, patches + positions])",
       PositionResize::Refuse, vision_eomt},
      {"timm_vit", "VisionTransformer of timm",
       "norm(dropout([class, registers, patches] + positions)), or positions of patches alone",
       PositionResize::BicubicAntialiasKeepEqual, vision_timm},
      // clang-format on
  };
  return table;
}

const std::vector<VisionModelRow>& vision_model_table() {
  static const std::vector<VisionModelRow> table = {
      // clang-format off
      {"vit", "vit"},
      {"vit_msn", "vit"},
      {"flava_image_model", "vit", with_mask},
      {"deit", "deit"},
      {"ijepa", "ijepa"},
      {"vit_mae", "mae"},
      {"beit", "beit"},
      {"data2vec-vision", "beit_cast"},
      {"internvl_vision", "beit_cast"},
      {"qianfan_ocr_vision", "beit_cast"},
      {"dinov2", "dinov2"},
      {"dinov2_with_registers", "dinov2_with_registers"},
      {"tipsv2_vision_model", "tipsv2"},
      {"dinov3_vit", "dinov3"},
      {"eomt_dinov3", "dinov3"},
      {"pixio", "pixio"},
      {"dpt", "dpt"},
      {"clip_vision_model", "clip"},
      {"altclip_vision_model", "clip"},
      {"bridgetower_vision_model", "clip"},
      {"chinese_clip_vision_model", "clip"},
      {"clipseg_vision_model", "clip"},
      {"git_vision_model", "clip"},
      {"kosmos_2_vision_model", "clip"},
      {"metaclip_2_vision_model", "clip"},
      {"mlcd_vision_model", "clip", without_positions},
      {"owlvit_vision_model", "clip", without_cast},
      {"owlv2_vision_model", "clip", without_cast},
      {"xclip_vision_model", "clip"},
      {"blip_vision_model", "blip"},
      {"blip_2_vision_model", "blip"},
      {"instructblip_vision_model", "blip"},
      {"instructblipvideo_vision_model", "blip"},
      {"siglip_vision_model", "siglip"},
      {"granite_docling_vision", "siglip"},
      {"janus_vision_model", "siglip"},
      {"step3p5_vision", "step3p7"},
      {"eomt", "eomt"},
      // clang-format on
  };
  return table;
}

}  // namespace posenc
