// What encoders in windows read from config.json: Swin and SAM.

#include "models/encoder/layer_settings.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "models/config/setting_names.h"
#include "models/embeddings/presets.h"

namespace posenc {
namespace {

using relative::Grid;

constexpr int64_t kMostStages = 16, kMostWindowLayers = 1000, kWidestMap = 1 << 20;

// The lists of Swin, which have a number for each stage; transformers ignores further ones.
std::vector<int64_t> of_stages(const Settings& config, const char* name, size_t stages,
                               int64_t least) {
  const auto numbers = config.integers_if(name);
  const std::string rule = "must have an integer of at least " + std::to_string(least) +
                           " for each of the " + std::to_string(stages) + " stages of depths";
  if (!numbers || numbers->size() < stages) config.refuse(name, rule);
  for (size_t i = 0; i < stages; ++i) {
    if ((*numbers)[i] < least || (*numbers)[i] > kWidestMap) config.refuse(name, rule);
  }
  return *numbers;
}

std::vector<int64_t> depths_in(const Settings& config) {
  const auto depths = config.integers_if("depths");
  const bool fits = depths && !depths->empty() &&
                    depths->size() <= static_cast<size_t>(kMostStages) &&
                    std::all_of(depths->begin(), depths->end(),
                                [](int64_t one) { return one >= 1 && one <= kMostWindowLayers; });
  if (!fits) {
    config.refuse("depths", "must have the number of layers of each of 1 to 16 stages, from 1 to " +
                                std::to_string(kMostWindowLayers));
  }
  return *depths;
}

// The patches of both, which have no class token.
VisionEmbeddingsOptions patches_in(const Settings& config, int64_t width) {
  const VisionSides image = vision_sides(config, "image_size");
  const VisionSides patch = vision_sides(config, "patch_size");
  VisionEmbeddingsOptions options(image.height, patch.height, width);
  options.image_width(image.width).patch_width(patch.width).class_tokens(0);
  options.num_channels(config.integer("num_channels", 1, kWidestMap));
  options.initializer_range(config.real("initializer_range"));
  options.position_table(vision::PositionTable::None);
  return options;
}

VisionEmbeddingsOptions swin_patches(const Settings& config, int64_t width) {
  VisionEmbeddingsOptions options = patches_in(config, width);
  options.norm(true).patch_norm(true).pad_patches(true);
  options.dropout(config.probability(hf::kDropout, 0.0));
  vision::Names names = options.names();
  names.norm = "norm";
  options.names(names);
  if (!config.flag("use_absolute_embeddings")) return options;
  // Another size has the positions interpolated, which transformers does for whole patches only.
  return options.position_table(vision::PositionTable::Parameter)
      .pad_patches(false)
      .whole_patches(true);
}

int64_t network_width(const Settings& config, int64_t width) {
  const double wide = config.real("mlp_ratio") * static_cast<double>(width);
  if (!(wide >= 1.0 && wide < static_cast<double>(kWidestMap)))
    config.refuse("mlp_ratio", "must make a network of at least one channel");
  return static_cast<int64_t>(wide);
}

// What the classes of Swin have of their own.
struct SwinKind {
  bool is_v2 = false;
  bool has_norm = true;            // after all stages
  bool has_positions = false;      // of all patches, where the configuration asks for them
  bool drops_as_attention = true;  // the output of the attention, at the rate of its weights
};

// Swin v2 fits its windows to the maps of images of image_size, of which it takes the height.
WindowOptions swin_windows(const Settings& config, const SwinKind& kind, int64_t stage,
                           int64_t layer, const VisionEmbeddingsOptions& patches) {
  const int64_t side = config.integer("window_size", 1, kWidestMap);
  const int64_t shift = layer % 2 == 0 ? 0 : side / 2;
  if (!kind.is_v2) return WindowOptions({side, side}).shift(shift).path_of_attention(true);
  const int64_t map = (patches.image_height() / patches.patch_height()) >> stage;
  if (map == 0) config.refuse("image_size", "must leave a patch for the map of the last stage");
  const int64_t own = std::min(side, map);
  WindowOptions windows({own, own});
  return windows.shift(map <= side ? 0 : shift)
      .positions(WindowPositions::Continuous)
      .needs_room(false)
      .res_post_norm(true);
}

void set_pretrained(const Settings& config, size_t stages,
                    std::vector<WindowStageOptions>& options) {
  constexpr const char* kPretrained = "pretrained_window_sizes";
  const std::vector<int64_t> sides = of_stages(config, kPretrained, stages, 0);
  for (size_t i = 0; i < stages; ++i) {
    if (sides[i] == 1)
      config.refuse(kPretrained, "must not be 1, by which no coordinates can be scaled");
    for (WindowEncoderLayerOptions& layer : options[i].layers())
      layer.windows().pretrained_window({sides[i], sides[i]});
  }
}

TransformerLayerOptions swin_layer(const Settings& config, const SwinKind& kind, int64_t width,
                                   int64_t heads, double path) {
  if (width % heads != 0) {
    config.refuse("num_heads", "must divide embed_dim and its doubles, such as " +
                                   std::to_string(width) + ", of which " + std::to_string(heads) +
                                   " is no divisor");
  }
  LayerDropouts drops;
  drops.attention = config.probability(hf::kAttentionDropout, 0.0);
  drops.output = config.probability(hf::kDropout, 0.0);
  drops.attention_output = kind.drops_as_attention ? drops.attention : drops.output;
  drops.path = path;
  TransformerLayerOptions layer(width, heads);
  return layer.norm_first(true)
      .d_ff(network_width(config, width))
      .dropout(drops.output)
      .dropouts(drops)
      .activation(activation_in(config))
      .layer_norm_eps(config.not_negative(hf::kEpsilon, 1e-5))
      .qkv_bias(config.flag("qkv_bias"))
      .key_bias(!kind.is_v2 || !config.flag("qkv_bias"));
}

EncoderOptions swin_options(const Settings& config, const SwinKind& kind) {
  const std::vector<int64_t> depths = depths_in(config);
  const std::vector<int64_t> heads = of_stages(config, "num_heads", depths.size(), 1);
  int64_t width = config.integer("embed_dim", 1, kWidestMap >> (depths.size() - 1));
  const VisionEmbeddingsOptions patches = swin_patches(config, width);
  constexpr const char* kAbsolute = "use_absolute_embeddings";
  if (!kind.has_positions && config.flag(kAbsolute)) {
    config.refuse(kAbsolute,
                  "must be false: the class has a position too many then, and cannot be run");
  }
  int64_t count = 0, number = 0;
  for (const int64_t depth : depths) count += depth;
  const double rate = config.probability(hf::kPathDropout, 0.0);
  std::vector<WindowStageOptions> stages;
  for (size_t i = 0; i < depths.size(); ++i) {
    std::vector<WindowEncoderLayerOptions> layers;
    for (int64_t j = 0; j < depths[i]; ++j, ++number) {
      const double path =
          rate * static_cast<double>(number) / static_cast<double>(std::max<int64_t>(count - 1, 1));
      layers.emplace_back(swin_layer(config, kind, width, heads[i], path),
                          swin_windows(config, kind, static_cast<int64_t>(i), j, patches));
    }
    stages.emplace_back(std::move(layers));
    if (i + 1 < depths.size())
      stages.back().downsample(PatchMergingOptions(width).norm_first(!kind.is_v2));
    if (i + 1 < depths.size()) width *= 2;
  }
  if (kind.is_v2 && config.has("pretrained_window_sizes"))
    set_pretrained(config, depths.size(), stages);
  return {patches, WindowEncoderOptions(std::move(stages)).norm(kind.has_norm)};
}

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
                                  : network_width(config, width))
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

}  // namespace

EncoderOptions read_swin(const Settings& config) {
  return swin_options(config, {.has_positions = true, .drops_as_attention = false});
}

EncoderOptions read_donut_swin(const Settings& config) {
  return swin_options(config, {.has_norm = false});
}

EncoderOptions read_swin_v2(const Settings& config) {
  return swin_options(config, {.is_v2 = true});
}

EncoderOptions read_sam(const Settings& config) {
  const int64_t width = config.integer("hidden_size", 1, kWidestMap);
  VisionEmbeddingsOptions patches = patches_in(config, width);
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

}  // namespace posenc
