// The model types of transformers and their vision fronts.

#include "models/front/vision_table.h"

namespace posenc {
namespace {

void without_cast(const Settings&, VisionFrontOptions& o) { o.cast_pixels(false); }

void with_mask(const Settings&, VisionFrontOptions& o) { o.mask_token(true); }

void without_positions(const Settings&, VisionFrontOptions& o) {
  o.position_table(vision::PositionTable::None);
}

}  // namespace

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
