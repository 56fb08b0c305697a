// Swin, Swin v2 and Donut's Swin: stages of layers in windows.

#include <algorithm>
#include <utility>
#include <vector>

#include "models/config/setting_names.h"
#include "models/families/family.h"

namespace posenc::families {
namespace {

constexpr int64_t kMostStages = 16;

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

VisionEmbeddingsOptions swin_patches(const Settings& config, int64_t width) {
  VisionEmbeddingsOptions options = window_patches(config, width);
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

// What the classes have of their own.
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
      .d_ff(window_network_width(config, width))
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

EncoderOptions read_swin(const Settings& config) {
  return swin_options(config, {.has_positions = true, .drops_as_attention = false});
}

EncoderOptions read_donut_swin(const Settings& config) {
  return swin_options(config, {.has_norm = false});
}

EncoderOptions read_swin_v2(const Settings& config) {
  return swin_options(config, {.is_v2 = true});
}

// The numbers of a layer's stage and of the layer in it.
std::vector<int64_t> swin_numbers(const EncoderConfig& config, int64_t index) {
  const auto [stage, layer] = config.options.windows()->locate_layer(index);
  return {stage, layer};
}

// The layers of each stage beyond those of the model, the stages beyond them, and what the last has
// for the next.
void drop_later_stages(KeyMap& map, const EncoderConfig& config, const io::TensorSource& source,
                       const std::string& prefix) {
  const std::string layer = config.structure.keys.front().layer;
  const auto& stages = config.options.windows()->stages();
  const auto count = static_cast<int64_t>(stages.size());
  const std::size_t star = layer.find('*');
  const std::string stage = layer.substr(0, star);
  drop_later_layers(map, source, prefix, stage + "*.", {count});
  map.emplace(map.begin(), stage + std::to_string(count - 1) + ".downsample.*", "");
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::string own = stage + std::to_string(i) + layer.substr(star + 1);
    drop_later_layers(map, source, prefix, own, {static_cast<int64_t>(stages[i].layers().size())});
  }
}

constexpr LayerNumbering kSwinNumbering = {swin_numbers, drop_later_stages, "the sum of depths"};

void name_swin(KeyMap& map, const EncoderConfig& config) {
  drop_absent_positions(map, config);
  map.emplace_back("encoder.layers.*.downsample.*", "encoder.stages.*.downsample.*");
}

// As for ViT, transformers 5 renames the tensors of Swin, but not those of the others.
void name_swin_layer(const LayerNames& names) {
  const bool is_new = names.keys.wide == std::string_view("mlp.fc1");
  const std::string in_file =
      names.from + (is_new ? "attention.relative_position_bias." : "attention.self.");
  const std::string own = names.to + "self_attn.";
  for (const std::string name : {"relative_position_bias_table", "logit_scale"})
    names.map.emplace_back(in_file + name, own + name);
  names.map.emplace_back(in_file + "continuous_position_bias_mlp.0.*", own + "coordinates.*");
  names.map.emplace_back(in_file + "continuous_position_bias_mlp.2.*", own + "entries.*");
}

// The rows of each layer's table, which the class has among its weights, as the rest of a folder
// does.
void save_window_indices(StateDict& tensors, const EncoderConfig& config,
                         const EncoderImpl& model) {
  const WindowEncoderOptions& options = model.windows->options;
  for (int64_t i = 0; i < options.num_layers(); ++i) {
    const auto [stage, layer] = options.locate_layer(i);
    const relative::Grid window = options.stages()[static_cast<std::size_t>(stage)]
                                      .layers()[static_cast<std::size_t>(layer)]
                                      .windows()
                                      .window();
    const std::string name = config.options.origin().prefix + "encoder.layers." +
                             std::to_string(stage) + ".blocks." + std::to_string(layer) +
                             ".attention.self.relative_position_index";
    if (!tensors.contains(name)) tensors.insert(name, relative_window_index(window));
  }
}

// clang-format off
constexpr EncoderLayerKeys kSwinKeys[] = {{
    .layer = "encoder.layers.*.blocks.*.",
    .query = "attention.self.query", .key = "attention.self.key", .value = "attention.self.value",
    .out = "attention.output.dense", .wide = "intermediate.dense", .narrow = "output.dense",
    .norm1 = "layernorm_before", .norm2 = "layernorm_after"}, {
    .layer = "encoder.layers.*.blocks.*.",
    .query = "attention.q_proj", .key = "attention.k_proj", .value = "attention.v_proj",
    .out = "attention.o_proj", .wide = "mlp.fc1", .narrow = "mlp.fc2",
    .norm1 = "layernorm_before", .norm2 = "layernorm_after"}};

// What older files have of windows is computed, and dropped.
constexpr EncoderStructure swin(std::size_t layouts, const char* last_norm, ReadWindows* windows,
                                EncoderStructure::Save* save = nullptr) {
  return {.keys = std::span(kSwinKeys).first(layouts), .own_layers = "encoder.stages.*.layers.*.",
          .numbering = &kSwinNumbering, .last_norm = last_norm, .raw_hidden_states = true,
          .pooling = Pooling::Mean,
          .dropped = "*.relative_position_index *.relative_coords_table", .windows = windows,
          .names = name_swin, .layer_names = name_swin_layer, .save = save};
}
constexpr EncoderStructure kSwinLayers = swin(2, "layernorm", read_swin);
constexpr EncoderStructure kSwinV2Layers = swin(1, "layernorm", read_swin_v2);
constexpr EncoderStructure kDonutSwinLayers = swin(1, "", read_donut_swin, save_window_indices);

constexpr HeadStructures kSwinHeads = {.image = {.out = "classifier", .rows = Rows::Pooled}};

constexpr ModelType kSwinTypes[] = {
    {.type = "donut-swin", .layers = &kDonutSwinLayers, .heads = &kSwinHeads,
     .prefix = "donut."},
    {.type = "swin", .layers = &kSwinLayers, .heads = &kSwinHeads, .prefix = "swin."},
    {.type = "swinv2", .layers = &kSwinV2Layers, .heads = &kSwinHeads, .prefix = "swinv2."},
};
// clang-format on

}  // namespace

constinit const Family swin = kSwinTypes;

}  // namespace posenc::families
