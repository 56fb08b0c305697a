// SAM's encoder of images: most layers see a window, some the whole map.

#include <algorithm>

#include "models/config/setting_names.h"
#include "models/families/family.h"

namespace posenc::families {
namespace {

// The places of the layers that see the whole map.
std::vector<int64_t> global_layers(const Settings& config) {
  constexpr const char* kGlobal = "global_attn_indexes";
  const auto layers = config.integers_if(kGlobal);
  if (!layers) config.refuse(kGlobal, "must be a list of layers");
  return *layers;
}

WindowStageOptions sam_stage(const Settings& config, int64_t width, Grid map) {
  const int64_t layers = config.integer("num_hidden_layers", 1, kMostWindowLayers);
  const int64_t heads = config.integer("num_attention_heads", 1, kWidestMap);
  if (width % heads != 0) {
    config.refuse("num_attention_heads",
                  "must divide " + config.key("hidden_size") + " " + std::to_string(width));
  }
  const int64_t side = config.integer("window_size", 0, kWidestMap);
  const std::vector<int64_t> whole = global_layers(config);
  LayerDropouts drops;
  drops.attention = config.probability(hf::kAttentionDropout, 0.0);
  TransformerLayerOptions layer(width, heads);
  layer.norm_first(true)
      .d_ff(config.has("mlp_dim") ? config.integer("mlp_dim", 1, kWidestMap)
                                  : window_network_width(config, width))
      .dropout(0.0)
      .dropouts(drops)
      .activation(activation_in(config))
      .layer_norm_eps(config.not_negative(hf::kEpsilon, 1e-6))
      .qkv_bias(config.flag("qkv_bias"));
  std::vector<WindowEncoderLayerOptions> all;
  for (int64_t i = 0; i < layers; ++i) {
    const bool sees_all = side == 0 || std::find(whole.begin(), whole.end(), i) != whole.end();
    WindowOptions windows(sees_all ? map : Grid{side, side});
    windows.needs_room(false).positions(config.flag("use_rel_pos") ? WindowPositions::Axes
                                                                   : WindowPositions::None);
    all.emplace_back(layer, windows);
  }
  return WindowStageOptions(std::move(all));
}

EncoderOptions read_sam(const Settings& config) {
  const int64_t width = config.integer("hidden_size", 1, kWidestMap);
  VisionEmbeddingsOptions patches = window_patches(config, width);
  patches.own_size(true);
  vision::Names names = patches.names();
  names.patches = "patch_embed.projection";
  names.positions = "pos_embed";
  patches.names(names);
  if (config.flag("use_abs_pos")) {
    patches.position_table(vision::PositionTable::Parameter)
        .position_table_dim(4)
        .resize(PositionResize::Refuse);
  }
  const Grid map = {patches.image_height() / patches.patch_height(),
                    patches.image_width() / patches.patch_width()};
  if (map.height != map.width) config.refuse("image_size", "must be one number, of a square");
  const int64_t channels = config.integer("output_channels", 1, kWidestMap);
  return {patches, WindowEncoderOptions({sam_stage(config, width, map)})
                       .norm(false)
                       .neck(ConvolutionNeckOptions(width, channels))
                       .records_layers(true)};
}

// What is not below `embeddings.`, and the neck.
void name_sam(KeyMap& map, const EncoderConfig& config) {
  const VisionEmbeddingsOptions& patches = *config.options.patches();
  const bool has_table = patches.position_table() != vision::PositionTable::None;
  const std::string own = "embeddings.";
  map.emplace_back("patch_embed.projection.*", own + patches.names().patches + ".*");
  map.emplace_back("pos_embed", has_table ? own + patches.names().positions : "");
  map.emplace_back("neck.*", "encoder.neck.*");
}

void name_sam_layer(const LayerNames& names) {
  const WindowEncoderLayerOptions& first = names.config.options.windows()->stages()[0].layers()[0];
  const bool has_positions = first.windows().positions() != WindowPositions::None;
  for (const std::string name : {"rel_pos_h", "rel_pos_w"})
    names.map.emplace_back(names.from + "attn." + name,
                           has_positions ? names.to + "self_attn." + name : "");
}

// clang-format off
constexpr EncoderLayerKeys kSamKeys[] = {{
    .layer = "layers.*.", .query = "attn.qkv", .out = "attn.proj", .wide = "mlp.lin1",
    .narrow = "mlp.lin2", .norm1 = "layer_norm1", .norm2 = "layer_norm2"}};

constexpr EncoderStructure kSamLayers = {.keys = kSamKeys,
    .own_layers = "encoder.stages.0.layers.*.", .raw_hidden_states = true, .windows = read_sam,
    .names = name_sam, .layer_names = name_sam_layer};

constexpr ModelType kSamTypes[] = {
    {.type = "sam", .part = "vision_config"},
    {.type = "sam_vision_model", .layers = &kSamLayers, .prefix = "vision_encoder."},
};
// clang-format on

}  // namespace

constinit const Family sam = kSamTypes;

}  // namespace posenc::families
