// Decoders that differ a little from Llama: Phi-3, Granite, SmolLM3, GLM, Seed-OSS, ERNIE 4.5,
// Helium, Arcee, Hunyuan and Ministral.

#include "models/families/family.h"
#include "models/positions/rope_parameters.h"

namespace posenc::families {
namespace {

// Queries, keys and values have biases, or not, and so has the output.
void set_attention_biases(TransformerLayerOptions& layer, bool attention, bool output) {
  layer.qkv_bias(attention).out_bias(output);
}

void set_window(const Settings& config, EncoderOptions& options) {
  if (config.has("sliding_window")) own_layer(options).window(window_of(config, options.causal()));
}

void set_residual_dropout(const Settings& config, const char* setting,
                          TransformerLayerOptions& layer) {
  const double rate = config.real(setting);
  if (!(rate >= 0.0 && rate < 1.0)) config.refuse(setting, "must be in [0, 1)");
  LayerDropouts drops = layer.dropouts().value_or(LayerDropouts());
  drops.attention_output = drops.output = rate;
  layer.dropouts(drops);
}

void read_phi3(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  set_kv_heads(config, layer);
  set_biases(layer, false, false);
  set_residual_dropout(config, "resid_pdrop", layer);
  set_window(config, options);
}

void read_granite(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  set_kv_heads(config, layer);
  set_biases(layer, config.flag("attention_bias"), config.flag("mlp_bias"));
  layer.attention_scale(config.real("attention_multiplier"))
      .residual_scale(config.real("residual_multiplier"));
}

void scale_granite(const Settings& config, EncoderEmbeddingsOptions& options) {
  options.scale(config.real("embedding_multiplier"));
}

// Which layers rotate: those with a number other than 0, or all but every fourth.
std::vector<bool> rotated_layers(const Settings& config, int64_t count) {
  constexpr const char* kList = "no_rope_layers";
  const auto numbers = config.integers_if(kList);
  if (numbers && static_cast<int64_t>(numbers->size()) < count) {
    config.refuse(kList, "must be a number for each of " + config.key("num_hidden_layers") + " " +
                             std::to_string(count) + " layers");
  }
  const int64_t every = numbers ? 1 : config.integer("no_rope_layer_interval", 1, INT32_MAX);
  std::vector<bool> rotates;
  for (int64_t i = 0; i < count; ++i)
    rotates.push_back(numbers ? (*numbers)[static_cast<std::size_t>(i)] != 0
                              : (i + 1) % every != 0);
  return rotates;
}

void read_smollm3(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  set_kv_heads(config, layer);
  set_biases(layer, config.flag("attention_bias"), config.flag("mlp_bias"));
  const int64_t count = options.encoder().num_layers();
  const auto at = [](int64_t i) { return static_cast<std::size_t>(i); };
  const auto rotates = rotated_layers(config, count);
  const bool slides = config.flag("use_sliding_window") && config.has("sliding_window");
  const auto sliding =
      sliding_layers(config, count, [&](int64_t i) { return slides && !rotates[at(i)]; });
  set_each_layer(options, [&](int64_t i, TransformerLayerOptions& own) {
    if (!rotates[at(i)]) own.rotary(std::nullopt);
    if (sliding[at(i)]) own.window(window_of(config, options.causal()));
  });
}

void read_glm(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  set_kv_heads(config, layer);
  set_biases(layer, false, false);
  set_attention_biases(layer, config.flag("attention_bias"), false);
}

void read_glm4(const Settings& config, const ModelType& model, EncoderOptions& options) {
  read_glm(config, model, options);
  own_layer(options).post_norms(true);
}

void read_seed_oss(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  set_kv_heads(config, layer);
  set_biases(layer, false, config.flag("mlp_bias"));
  set_attention_biases(layer, config.flag("attention_bias"), config.flag("attention_out_bias"));
  set_residual_dropout(config, "residual_dropout", layer);
}

void read_ernie(const Settings& config, const ModelType&, EncoderOptions& options) {
  const bool has_bias = config.flag_if("use_bias").value_or(false);
  set_kv_heads(config, own_layer(options));
  set_biases(own_layer(options), has_bias, has_bias);
}

void read_helium(const Settings& config, const ModelType& model, EncoderOptions& options) {
  read_glm(config, model, options);
  const bool has_bias = config.flag("mlp_bias");
  own_layer(options).linear1_bias(has_bias).linear2_bias(has_bias);
}

void read_arcee(const Settings& config, const ModelType&, EncoderOptions& options) {
  set_kv_heads(config, own_layer(options));
  set_biases(own_layer(options), config.flag("attention_bias"), config.flag("mlp_bias"));
}

void read_hunyuan(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  set_kv_heads(config, layer);
  set_biases(layer, config.flag("attention_bias"), false);
  layer.qk_norm(true).qk_norm_after_rotary(true);
}

void read_ministral(const Settings& config, const ModelType&, EncoderOptions& options) {
  set_kv_heads(config, own_layer(options));
  set_biases(own_layer(options), false, false);
  const bool slides = config.has("sliding_window");
  const auto sliding =
      sliding_layers(config, options.encoder().num_layers(), [&](int64_t) { return slides; });
  set_layers(options, sliding, [&](TransformerLayerOptions& layer) {
    layer.window(window_of(config, options.causal()));
  });
}

// Queries grow by settings among those of the rotary embedding.
void read_ministral3(const Settings& config, const ModelType& model, EncoderOptions& options) {
  constexpr const char *kBeta = "llama_4_scaling_beta",
                       *kLength = "original_max_position_embeddings";
  TransformerLayerOptions& layer = own_layer(options);
  set_kv_heads(config, layer);
  set_biases(layer, false, false);
  set_window(config, options);
  const Settings rotary = rope_settings(config, model, "").parameters;
  layer.query_growth(QueryGrowth{rotary.required(kBeta, "the growth of queries"),
                                 rotary.integer(kLength, 1, INT64_MAX)});
}

// clang-format off
constexpr EncoderLayerKeys with_norms(EncoderLayerKeys keys, const char* q_norm, const char* k_norm) {
  keys.q_norm = q_norm;
  keys.k_norm = k_norm;
  return keys;
}
constexpr EncoderLayerKeys with_packed_network(EncoderLayerKeys keys) {
  keys.wide = "mlp.gate_up_proj";
  keys.gate = "";
  return keys;
}
constexpr EncoderLayerKeys kPhi3Keys[] = {{
    .layer = "layers.*.", .query = "self_attn.qkv_proj", .out = "self_attn.o_proj",
    .wide = "mlp.gate_up_proj", .narrow = "mlp.down_proj", .norm1 = "input_layernorm",
    .norm2 = "post_attention_layernorm"}};
constexpr EncoderLayerKeys kGlmKeys[] = {with_packed_network(layers::kLlamaKeys[0])};
constexpr EncoderLayerKeys kGlm4Keys[] = {{
    .layer = "layers.*.", .query = "self_attn.q_proj", .key = "self_attn.k_proj",
    .value = "self_attn.v_proj", .out = "self_attn.o_proj", .wide = "mlp.gate_up_proj",
    .narrow = "mlp.down_proj", .norm1 = "input_layernorm", .norm2 = "post_attention_layernorm",
    .post_norm1 = "post_self_attn_layernorm", .post_norm2 = "post_mlp_layernorm"}};
constexpr EncoderLayerKeys kArceeKeys[] = {{
    .layer = "layers.*.", .query = "self_attn.q_proj", .key = "self_attn.k_proj",
    .value = "self_attn.v_proj", .out = "self_attn.o_proj", .wide = "mlp.up_proj",
    .narrow = "mlp.down_proj", .norm1 = "input_layernorm", .norm2 = "post_attention_layernorm"}};
constexpr EncoderLayerKeys kHunyuanKeys[] = {
    with_norms(layers::kLlamaKeys[0], "self_attn.query_layernorm", "self_attn.key_layernorm")};

constexpr EncoderStructure plain_network(EncoderStructure structure) {
  structure.feed_forward = FeedForward::Plain;
  return structure;
}
constexpr EncoderStructure kPhi3Layers = layers::llama(read_phi3, kPhi3Keys);
constexpr EncoderStructure kGraniteLayers = layers::llama(read_granite);
constexpr EncoderStructure kSmolLm3Layers = layers::llama(read_smollm3);
constexpr EncoderStructure kGlmLayers = layers::llama(read_glm, kGlmKeys);
constexpr EncoderStructure kGlm4Layers = layers::llama(read_glm4, kGlm4Keys);
constexpr EncoderStructure kSeedOssLayers = layers::llama(read_seed_oss);
constexpr EncoderStructure kErnieLayers = layers::llama(read_ernie);
constexpr EncoderStructure kHeliumLayers = layers::llama(read_helium);
constexpr EncoderStructure kArceeLayers = plain_network(layers::llama(read_arcee, kArceeKeys));
constexpr EncoderStructure kHunyuanLayers = layers::llama(read_hunyuan, kHunyuanKeys);
constexpr EncoderStructure kMinistralLayers = layers::llama(read_ministral);
constexpr EncoderStructure kMinistral3Layers = layers::llama(read_ministral3);

constexpr EmbeddingsStructure kGraniteTables = {.norm = Norm::None, .position_ids = PositionIds::None,
    .has_types = false, .has_dropout = false, .tokens = "embed_tokens", .more = scale_granite};

constexpr DecoderStructure kGraniteDecoder = {.divisor_setting = "logits_scaling"};
constexpr DecoderStructure kPhi3Decoder = {.restart_setting = "original_max_position_embeddings"};

constexpr ModelType kLlamaLikeTypes[] = {
    {.type = "arcee", .embeddings = "llama", .rotary = "llama", .layers = &kArceeLayers,
     .heads = &heads::kDecoder, .decoder = &kPlainDecoder, .prefix = "model.",
     .old_prefix = "transformer."},
    {.type = "ernie4_5", .embeddings = "llama", .rotary = "ernie4_5", .layers = &kErnieLayers,
     .decoder = &kPlainDecoder, .prefix = "model."},
    {.type = "glm", .embeddings = "llama", .rotary = "glm", .layers = &kGlmLayers,
     .heads = &heads::kLabels, .decoder = &kPlainDecoder, .prefix = "model."},
    {.type = "glm4", .embeddings = "llama", .rotary = "glm", .layers = &kGlm4Layers,
     .heads = &heads::kLabels, .decoder = &kPlainDecoder, .prefix = "model."},
    {.type = "granite", .embeddings = "llama", .tables = &kGraniteTables, .rotary = "llama",
     .layers = &kGraniteLayers, .decoder = &kGraniteDecoder, .prefix = "model."},
    {.type = "helium", .embeddings = "llama", .rotary = "helium", .layers = &kHeliumLayers,
     .heads = &heads::kLabels, .decoder = &kPlainDecoder, .prefix = "model."},
    {.type = "hunyuan_v1_dense", .embeddings = "llama", .rotary = "hunyuan_v1",
     .layers = &kHunyuanLayers, .heads = &heads::kLastToken, .decoder = &kPlainDecoder,
     .prefix = "model."},
    {.type = "ministral", .embeddings = "llama", .rotary = "llama", .layers = &kMinistralLayers,
     .heads = &heads::kDecoder, .decoder = &kPlainDecoder, .prefix = "model.",
     .old_prefix = "transformer."},
    {.type = "ministral3", .embeddings = "llama", .rotary = "llama", .layers = &kMinistral3Layers,
     .heads = &heads::kDecoder, .decoder = &kPlainDecoder, .prefix = "model."},
    {.type = "phi3", .embeddings = "llama", .rotary = "gpt_neox",
     .rope = {.scalings = "default longrope", .longrope_names = true}, .layers = &kPhi3Layers,
     .heads = &heads::kLabels, .decoder = &kPhi3Decoder, .prefix = "model."},
    {.type = "seed_oss", .embeddings = "llama", .rotary = "llama", .layers = &kSeedOssLayers,
     .heads = &heads::kDecoder, .decoder = &kPlainDecoder, .prefix = "model.",
     .old_prefix = "transformer."},
    {.type = "smollm3", .embeddings = "llama", .rotary = "llama", .layers = &kSmolLm3Layers,
     .heads = &heads::kDecoder, .decoder = &kPlainDecoder, .prefix = "model.",
     .old_prefix = "transformer."},
};
// clang-format on

}  // namespace

constinit const Family llama_like = kLlamaLikeTypes;

}  // namespace posenc::families
