// ViT and what differs from it: DeiT, I-JEPA, BEiT, data2vec's, DINOv2 and DINOv3.

#include <algorithm>

#include "models/families/family.h"

namespace posenc::families {
namespace {

// The rate of DropPath grows from layer to layer.
void set_growing_path_dropout(EncoderOptions& options) {
  LayerDropouts drops = *own_layer(options).dropouts();
  const double rate = drops.path;
  if (rate == 0.0) return;
  const int64_t layers = options.encoder().num_layers();
  std::vector<TransformerLayerOptions> all;
  for (int64_t i = 0; i < layers; ++i) {
    drops.path =
        rate * static_cast<double>(i) / static_cast<double>(std::max<int64_t>(layers - 1, 1));
    all.push_back(own_layer(options));
    all.back().dropouts(drops);
  }
  options.encoder().layers(std::move(all));
}

void read_beit(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  layer.key_bias(false);
  const double scale = config.real("layer_scale_init_value");
  if (scale > 0) layer.layer_scale(scale);
  const VisionEmbeddingsOptions& patches = *options.patches();
  const relative::Grid grid = {patches.image_height() / patches.patch_height(),
                               patches.image_width() / patches.patch_width()};
  if (config.flag("use_relative_position_bias")) layer.grid_bias(grid);
  if (config.flag("use_shared_relative_position_bias")) options.encoder().grid_bias(grid);
  const bool is_mean = config.flag("use_mean_pooling");
  options.pooling(is_mean ? encoder::Pooling::NormOfMean : encoder::Pooling::First);
  options.encoder().norm(!is_mean);
  set_growing_path_dropout(options);
}

// clang-format off
// transformers 5 renames the tensors of these when it loads, and back when it saves.
constexpr EncoderLayerKeys kViTKeys[] = {{
    .layer = "encoder.layer.*.",
    .query = "attention.attention.query", .key = "attention.attention.key",
    .value = "attention.attention.value", .out = "attention.output.dense",
    .wide = "intermediate.dense", .narrow = "output.dense",
    .norm1 = "layernorm_before", .norm2 = "layernorm_after"}, {
    .layer = "layers.*.",
    .query = "attention.q_proj", .key = "attention.k_proj", .value = "attention.v_proj",
    .out = "attention.o_proj", .wide = "mlp.fc1", .narrow = "mlp.fc2",
    .norm1 = "layernorm_before", .norm2 = "layernorm_after"}};
// clang-format on

// The tables of positions of a layer and of all, and LayerScale's factors.
void name_beit_layer(const LayerNames& names) {
  const TransformerEncoderOptions& stack = names.config.options.encoder();
  const TransformerLayerOptions& layer = stack.layer();
  const bool is_old = names.keys.layer == std::string_view(kViTKeys[0].layer);
  const std::string table = "relative_position_bias_table", own = "grid_position_bias.weight";
  const auto add = [&](const std::string& in_file, bool is_used, const std::string& name) {
    names.map.emplace_back(in_file, is_used ? name : "");
  };
  add((is_old ? "encoder.relative_position_bias." : "shared_position_bias.") + table,
      stack.grid_bias().has_value(), "encoder." + own);
  add(names.from + (is_old ? "attention.attention." : "") + "relative_position_bias." + table,
      layer.grid_bias().has_value(), names.to + own);
  const bool scales = layer.layer_scale().has_value();
  add(names.from + "lambda_1", scales, names.to + "layer_scale1.lambda1");
  add(names.from + "lambda_2", scales, names.to + "layer_scale2.lambda1");
}

// clang-format off
constexpr EncoderStructure kViTLayers = {.keys = kViTKeys, .norm_first = true, .last_norm = "layernorm",
    .raw_hidden_states = true, .pooling = Pooling::TanhOfFirst};
constexpr EncoderStructure kBeitLayers = {.keys = kViTKeys, .norm_first = true,
    .last_norm = "layernorm", .raw_hidden_states = true, .pooling = Pooling::NormOfMean,
    .pooler = "pooler.layernorm", .dropped = "*relative_position_index", .more = read_beit,
    .names = drop_absent_positions, .layer_names = name_beit_layer};

constexpr HeadStructures kBeitHeads = {.image = {.out = "classifier", .rows = Rows::Pooled}};
constexpr HeadStructures kViTHeads = heads::image_head(Rows::Pooled);
// clang-format on

void read_dinov2(const Settings& config, const ModelType&, EncoderOptions& options) {
  own_layer(options).layer_scale(config.real("layerscale_value"));
}

void read_dinov3(const Settings& config, const ModelType& model, EncoderOptions& options) {
  read_dinov2(config, model, options);
  TransformerLayerOptions& layer = own_layer(options);
  layer.query_bias(config.flag("query_bias"))
      .key_bias(config.flag("key_bias"))
      .value_bias(config.flag("value_bias"))
      .out_bias(config.flag("proj_bias"));
  layer.linear1_bias(config.flag("mlp_bias")).linear2_bias(config.flag("mlp_bias"));
  if (config.flag("use_gated_mlp")) layer.feed_forward(FeedForward::Gated);
  options.pos_embed_shift(config.real_if("pos_embed_shift").value_or(0.0))
      .pos_embed_jitter(config.real_if("pos_embed_jitter").value_or(0.0))
      .pos_embed_rescale(config.real_if("pos_embed_rescale").value_or(0.0));
}

void name_dinov2_layer(const LayerNames& names) {
  names.map.emplace_back(names.from + "layer_scale*", names.to + "layer_scale*");
}

// With gates, the rows that are activated are a tensor before the others.
void name_dinov3_layer(const LayerNames& names) {
  name_dinov2_layer(names);
  const bool is_gated = names.config.options.encoder().layer().feed_forward() == FeedForward::Gated;
  names.add({is_gated ? "mlp.gate_proj" : "", "mlp.up_proj"}, "linear1.*");
}

// clang-format off
const EncoderLayerKeys kDinov2Keys[] = {{
    .layer = "encoder.layer.*.",
    .query = "attention.attention.query", .key = "attention.attention.key",
    .value = "attention.attention.value", .out = "attention.output.dense",
    .wide = "mlp.fc1", .narrow = "mlp.fc2", .norm1 = "norm1", .norm2 = "norm2"}, {
    .layer = "encoder.layer.*.",
    .query = "attention.q_proj", .key = "attention.k_proj", .value = "attention.v_proj",
    .out = "attention.o_proj", .wide = "mlp.fc1", .narrow = "mlp.fc2",
    .norm1 = "norm1", .norm2 = "norm2"}};

constexpr EncoderLayerKeys dinov3_keys(const char* layer) {
  return {.layer = layer,
          .query = "attention.q_proj", .key = "attention.k_proj", .value = "attention.v_proj",
          .out = "attention.o_proj", .narrow = "mlp.down_proj", .norm1 = "norm1",
          .norm2 = "norm2"};
}
constexpr EncoderLayerKeys kDinov3Keys[] = {dinov3_keys("layer.*."), dinov3_keys("model.layer.*.")};

constexpr EncoderStructure kDinov2Layers = {.keys = kDinov2Keys, .norm_first = true,
    .attention_output_dropout = Rate::None, .output_dropout = Rate::None,
    .last_norm = "layernorm", .raw_hidden_states = true, .pooling = Pooling::First,
    .more = read_dinov2, .layer_names = name_dinov2_layer};
constexpr EncoderStructure kDinov3Layers = {.keys = kDinov3Keys, .norm_first = true,
    .rotates = true, .attention_output_dropout = Rate::None, .output_dropout = Rate::None,
    .last_norm = "norm", .raw_hidden_states = true, .pooling = Pooling::First,
    .more = read_dinov3, .layer_names = name_dinov3_layer};

constexpr HeadStructures kDinov2Heads = heads::image_head(Rows::FirstAndMean);

constexpr ModelType kViTLikeTypes[] = {
    {.type = "beit", .vision = "beit", .layers = &kBeitLayers, .heads = &kBeitHeads,
     .prefix = "beit."},
    {.type = "data2vec-vision", .vision = "beit_cast", .layers = &kBeitLayers,
     .heads = &kBeitHeads, .prefix = "data2vec_vision.", .has_pooler = false},
    {.type = "deit", .vision = "deit", .layers = &kViTLayers, .heads = &kViTHeads,
     .prefix = "deit."},
    {.type = "dinov2", .vision = "dinov2", .layers = &kDinov2Layers, .heads = &kDinov2Heads,
     .prefix = "dinov2."},
    {.type = "dinov2_with_registers", .vision = "dinov2_with_registers", .layers = &kDinov2Layers,
     .heads = &kDinov2Heads, .prefix = "dinov2_with_registers."},
    {.type = "dinov3_vit", .vision = "dinov3", .rotary = "dinov3",
     .rope = {.head_dim_key = "", .ignores_rope_parameters = true}, .layers = &kDinov3Layers},
    {.type = "ijepa", .vision = "ijepa", .layers = &kViTLayers,
     .heads = &heads::kVisionMean, .prefix = "ijepa.", .has_pooler = false},
    {.type = "vit", .vision = "vit", .layers = &kViTLayers, .heads = &kViTHeads,
     .prefix = "vit."},
};
// clang-format on

}  // namespace

constinit const Family vit_like = kViTLikeTypes;

}  // namespace posenc::families
