// The model types of transformers and their vision fronts.

#include "models/front/vision_table.h"

namespace posenc {
namespace {

void without_cast(const Settings&, const VisionDefaults&, VisionFrontOptions& o) {
  o.cast_pixels(false);
}

}  // namespace

const std::vector<VisionModelRow>& vision_model_table() {
  static const std::vector<VisionModelRow> table = {
      // clang-format off
      {"vit", "vit", {}},
      {"vit_msn", "vit", {}},
      {"flava_image_model", "vit", {.masks = true}},
      {"deit", "deit", {}},
      {"ijepa", "ijepa", {}},
      {"vit_mae", "mae", {}},
      {"beit", "beit", {.positions = false}},
      {"data2vec-vision", "beit_cast", {.positions = false}},
      {"internvl_vision", "beit_cast", {.image = 448, .patch = 14, .hidden = 1024}},
      {"qianfan_ocr_vision", "beit_cast", {.image = 448, .patch = 14, .hidden = 1024}},
      {"dinov2", "dinov2", {.patch = 14, .masks = true}},
      {"dinov2_with_registers", "dinov2_with_registers", {.registers = 4}},
      {"tipsv2_vision_model", "tipsv2", {.image = 448, .patch = 14, .registers = 1}},
      {"dinov3_vit", "dinov3", {.hidden = 384}},
      {"eomt_dinov3", "dinov3", {.image = 640, .hidden = 1024, .registers = 4}},
      {"pixio", "pixio", {.image = 256, .hidden = 1280, .classes = 8}},
      {"dpt", "dpt", {.image = 384}},
      {"clip_vision_model", "clip", {.patch = 32}},
      {"altclip_vision_model", "clip", {.patch = 32}},
      {"bridgetower_vision_model", "clip", {.image = 288}},
      {"chinese_clip_vision_model", "clip", {.patch = 32}},
      {"clipseg_vision_model", "clip", {.patch = 32}},
      {"git_vision_model", "clip", {}},
      {"kosmos_2_vision_model", "clip", {.patch = 14, .hidden = 1024}},
      {"metaclip_2_vision_model", "clip", {.patch = 32}},
      {"mlcd_vision_model", "clip", {.image = 336, .patch = 14, .hidden = 1664,
       .positions = false}},
      {"owlvit_vision_model", "clip", {.image = 768, .patch = 32}, without_cast},
      {"owlv2_vision_model", "clip", {.image = 768}, without_cast},
      {"xclip_vision_model", "clip", {.patch = 32}},
      {"blip_vision_model", "blip", {.image = 384}},
      {"blip_2_vision_model", "blip", {.patch = 14, .hidden = 1408}},
      {"instructblip_vision_model", "blip", {.patch = 14, .hidden = 1408}},
      {"instructblipvideo_vision_model", "blip", {.patch = 14, .hidden = 1408}},
      {"siglip_vision_model", "siglip", {}},
      {"granite_docling_vision", "siglip", {.image = 512}},
      {"janus_vision_model", "siglip", {.image = 384, .hidden = 1024}},
      {"step3p5_vision", "step3p7", {.image = 728, .patch = 14, .hidden = 1536}},
      {"eomt", "eomt", {.image = 640, .hidden = 1024, .registers = 4}},
      // clang-format on
  };
  return table;
}

}  // namespace posenc
