// wav2vec2-conformer, whose input is features of sound.

#include "models/families/family.h"

namespace posenc::families {
namespace {

// The norms of its layers have torch's epsilon, that after them the setting's.
void read_wav2vec2_conformer(const Settings& config, const ModelType& model,
                             EncoderOptions& options) {
  constexpr double kTorchEpsilon = 1e-5;
  TransformerLayerOptions& layer = own_layer(options);
  const int64_t size = config.integer("conv_depthwise_kernel_size", 1, INT32_MAX);
  if (size % 2 == 0) config.refuse("conv_depthwise_kernel_size", "must be odd");
  constexpr const char* kDropout[] = {"conformer_conv_dropout"};
  layer.conformer(ConformerOptions(size).conv_dropout(config.probability(kDropout, 0.0)));
  const std::string type = config.text_if("position_embeddings_type").value_or("");
  if (type == "relative") {
    if (layer.d_model() % 2 != 0) {
      config.refuse("hidden_size", "must be even: half of the channels of positions are sines");
    }
    layer.transformer_xl(TransformerXLOptions(SinusoidOptions(layer.d_model())));
  } else if (type == "rotary") {
    set_rotary(config, model, "", layer);
  }
  std::vector<TransformerLayerOptions> layers(
      static_cast<std::size_t>(options.encoder().num_layers()), layer);
  for (TransformerLayerOptions& one : layers) one.layer_norm_eps(kTorchEpsilon);
  options.encoder().layers(std::move(layers));
  options.zero_padding(true);
}

// What a layer has beside the first of its two networks and the projections of its attention.
void name_conformer_layer(const LayerNames& names) {
  const auto& [map, config, keys, from, to] = names;
  add_norm(map, from + "ffn1_layer_norm", to + "ffn1.norm");
  add_norm(map, from + "ffn2_layer_norm", to + "ffn2.norm");
  map.emplace_back(from + "ffn2.intermediate_dense.*", to + "ffn2.linear1.*");
  map.emplace_back(from + "ffn2.output_dense.*", to + "ffn2.linear2.*");
  const std::string attention = from + "self_attn.";
  if (config.options.encoder().layer().transformer_xl()) {
    map.emplace_back(attention + "linear_pos.*", to + "self_attn.position_proj.*");
    map.emplace_back(attention + "pos_bias_u", to + "self_attn.content_bias");
    map.emplace_back(attention + "pos_bias_v", to + "self_attn.position_bias");
  } else {
    drop_unused(map,
                {attention + "linear_pos.*", attention + "pos_bias_u", attention + "pos_bias_v"});
  }
  const std::string in_file = from + "conv_module.", own = to + "conv.";
  add_norm(map, in_file + "layer_norm", own + "norm");
  map.emplace_back(KeySource::squeezed(in_file + "pointwise_conv1.weight", 2),
                   own + "pointwise1.weight");
  map.emplace_back(KeySource::squeezed(in_file + "depthwise_conv.weight", 1),
                   own + "depthwise_weight");
  map.emplace_back(in_file + "batch_norm.*", own + "batch_norm.*");
  map.emplace_back(KeySource::squeezed(in_file + "pointwise_conv2.weight", 2),
                   own + "pointwise2.weight");
}

// clang-format off
constexpr EncoderLayerKeys kConformerKeys[] = {{
    .layer = "encoder.layers.*.",
    .query = "self_attn.linear_q", .key = "self_attn.linear_k", .value = "self_attn.linear_v",
    .out = "self_attn.linear_out", .wide = "ffn1.intermediate_dense", .narrow = "ffn1.output_dense",
    .norm1 = "self_attn_layer_norm", .norm2 = "final_layer_norm"}};

constexpr EncoderStructure kWav2Vec2ConformerLayers = {.keys = kConformerKeys, .network = "ffn1.",
    .attention_output_dropout = Rate::Attention, .last_norm = "encoder.layer_norm",
    .raw_hidden_states = true,
    .dropped = "masked_spec_embed feature_extractor.* feature_projection.* adapter.* "
               "encoder.pos_conv_embed.* *.inv_freq",
    .beside = "feature_extractor", .frequencies = "encoder.embed_positions.inv_freq",
    .more = read_wav2vec2_conformer, .layer_names = name_conformer_layer};

constexpr ModelType kConformerTypes[] = {
    {.type = "wav2vec2-conformer", .rotary = "wav2vec2_conformer", .rope = rope::kWav2Vec2,
     .layers = &kWav2Vec2ConformerLayers, .prefix = "wav2vec2_conformer."},
};
// clang-format on

}  // namespace

constinit const Family conformer = kConformerTypes;

}  // namespace posenc::families
