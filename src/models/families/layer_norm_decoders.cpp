// Decoders with Llama's names, or nearly, and layer norms: Cohere, Nemotron, OLMo, OPT, Phi,
// StableLM and StarCoder 2.

#include "models/families/family.h"

namespace posenc::families {
namespace {

// One norm for both blocks, without a bias.
void read_cohere(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  set_kv_heads(config, layer);
  set_biases(layer, config.flag("attention_bias"), false);
  layer.norm_bias(false).parallel(Parallel::SharedNorm);
  if (config.is_known("use_qk_norm") && config.flag_if("use_qk_norm").value_or(false))
    layer.qk_norm(true).qk_norm_per_head(true);
}

// Only layers with a window rotate.
void read_cohere2(const Settings& config, const ModelType& model, EncoderOptions& options) {
  read_cohere(config, model, options);
  const int64_t every = config.integer("sliding_window_pattern", 4, 1, INT32_MAX);
  const auto sliding = sliding_layers(config, options.encoder().num_layers(),
                                      [&](int64_t i) { return (i + 1) % every != 0; });
  set_layers(options, sliding, [&](TransformerLayerOptions& layer) {
    set_rotary(config, model, "", layer);
    layer.window(window_of(config, options.causal()));
  });
}

void read_nemotron(const Settings& config, const ModelType&, EncoderOptions& options) {
  set_kv_heads(config, own_layer(options));
  set_biases(own_layer(options), config.flag("attention_bias"), config.flag("mlp_bias"));
}

void read_olmo(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  set_kv_heads(config, layer);
  set_biases(layer, config.flag("attention_bias"), false);
  layer.norm_affine(false);
  set_clip(config, layer);
}

// OPT-350m has its norms after the sums, and projections around its layers.
void read_opt(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  const bool is_before = config.flag("do_layer_norm_before");
  layer.bias(config.flag("enable_bias")).norm_bias(true).norm_first(is_before);
  layer.norm_affine(config.flag("layer_norm_elementwise_affine"));
  options.encoder().norm(is_before && !config.flag("_remove_final_layer_norm"));
  const int64_t width = options.embeddings()->embedding_dim().value_or(layer.d_model());
  if (width != layer.d_model()) options.output_dim(width);
}

void name_opt_parts(KeyMap& map, const EncoderConfig&) {
  map.emplace_back("project_out.*", "output_projection.*");
}

void read_phi(const Settings& config, const ModelType&, EncoderOptions& options) {
  set_kv_heads(config, own_layer(options));
  own_layer(options).parallel(Parallel::SharedNorm);
  if (config.flag("qk_layernorm")) own_layer(options).qk_norm(true).qk_norm_bias(true);
}

void read_stablelm(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  set_kv_heads(config, layer);
  layer.bias(false).norm_bias(true).qkv_bias(config.flag("use_qkv_bias"));
  if (config.flag("use_parallel_residual")) layer.parallel(Parallel::SharedNorm);
  if (config.flag("qk_layernorm")) layer.qk_norm(true).qk_norm_per_head(true);
}

// The norms of its heads are apart.
void name_stablelm_layer(const LayerNames& names) {
  const TransformerLayerOptions& layer = names.config.options.encoder().layer();
  const auto name = [&](const std::string& in_file, const char* own, int64_t heads) {
    std::vector<KeySource> sources;
    for (int64_t i = 0; i < heads; ++i) {
      sources.push_back(KeySource::unsqueezed(
          names.from + in_file + ".norms." + std::to_string(i) + ".weight", 0));
    }
    names.map.emplace_back(KeySources(std::move(sources)), names.to + own);
  };
  name("self_attn.q_layernorm", "self_attn.q_norm.weight", layer.num_heads());
  name("self_attn.k_layernorm", "self_attn.k_norm.weight",
       layer.num_kv_heads().value_or(layer.num_heads()));
}

void read_starcoder2(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  set_kv_heads(config, layer);
  layer.bias(config.flag("use_bias")).norm_bias(true);
  if (config.has("sliding_window")) layer.window(window_of(config, options.causal()));
}

// clang-format off
constexpr EncoderLayerKeys with_own(const char* out, const char* wide, const char* gate,
                                    const char* narrow, const char* norm2) {
  return {.layer = "layers.*.", .query = "self_attn.q_proj", .key = "self_attn.k_proj",
          .value = "self_attn.v_proj", .out = out, .wide = wide, .gate = gate, .narrow = narrow,
          .norm1 = "input_layernorm", .norm2 = norm2};
}
constexpr EncoderLayerKeys gated(const char* norm2) {
  EncoderLayerKeys keys = with_own("self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj",
                                   "mlp.down_proj", norm2);
  keys.q_norm = "self_attn.q_norm";
  keys.k_norm = "self_attn.k_norm";
  return keys;
}
constexpr EncoderLayerKeys phi_keys() {
  EncoderLayerKeys keys = with_own("self_attn.dense", "mlp.fc1", "", "mlp.fc2", "");
  keys.q_norm = "self_attn.q_layernorm";
  keys.k_norm = "self_attn.k_layernorm";
  return keys;
}
constexpr EncoderLayerKeys opt_keys() {
  EncoderLayerKeys keys = with_own("self_attn.out_proj", "fc1", "", "fc2", "final_layer_norm");
  keys.norm1 = "self_attn_layer_norm";
  return keys;
}
constexpr EncoderLayerKeys kCohereKeys[] = {gated("")};
constexpr EncoderLayerKeys kStableLmKeys[] = {gated("post_attention_layernorm")};
constexpr EncoderLayerKeys kOlmoKeys[] = {gated("post_attention_layernorm")};
constexpr EncoderLayerKeys kNemotronKeys[] = {with_own("self_attn.o_proj", "mlp.up_proj", "",
    "mlp.down_proj", "post_attention_layernorm")};
constexpr EncoderLayerKeys kOptKeys[] = {opt_keys()};
constexpr EncoderLayerKeys kPhiKeys[] = {phi_keys()};
constexpr EncoderLayerKeys kStarCoder2Keys[] = {with_own("self_attn.o_proj", "mlp.c_fc", "",
    "mlp.c_proj", "post_attention_layernorm")};

constexpr EncoderStructure kCohereLayers = {.keys = kCohereKeys, .embeddings = "",
    .norm_first = true, .feed_forward = FeedForward::Gated, .rotates = true, .last_norm = "norm",
    .more = read_cohere};
constexpr EncoderStructure kCohere2Layers = {.keys = kCohereKeys, .embeddings = "",
    .norm_first = true, .feed_forward = FeedForward::Gated, .last_norm = "norm",
    .more = read_cohere2};
constexpr EncoderStructure kNemotronLayers = {.keys = kNemotronKeys, .embeddings = "",
    .norm_first = true, .norm_kind = NormKind::LayerPlusOne, .rotates = true, .last_norm = "norm",
    .more = read_nemotron};
constexpr EncoderStructure kOlmoLayers = {.keys = kOlmoKeys, .embeddings = "",
    .norm_first = true, .feed_forward = FeedForward::Gated, .rotates = true, .last_norm = "norm",
    .more = read_olmo};
constexpr EncoderStructure kOptLayers = {.keys = kOptKeys, .embeddings = "",
    .projection = "project_in", .norm_first = true, .last_norm = "final_layer_norm",
    .more = read_opt, .names = name_opt_parts};
constexpr EncoderStructure kPhiLayers = {.keys = kPhiKeys, .embeddings = "", .norm_first = true,
    .rotates = true, .last_norm = "final_layernorm", .more = read_phi};
constexpr EncoderStructure kStableLmLayers = {.keys = kStableLmKeys, .embeddings = "",
    .norm_first = true, .feed_forward = FeedForward::Gated, .rotates = true, .last_norm = "norm",
    .more = read_stablelm, .layer_names = name_stablelm_layer};
constexpr EncoderStructure kStarCoder2Layers = {.keys = kStarCoder2Keys, .embeddings = "",
    .norm_first = true, .rotates = true, .last_norm = "norm",
    .more = read_starcoder2};

// Llama's with a dropout.
constexpr EmbeddingsStructure kDroppedTables = {.norm = Norm::None,
    .position_ids = PositionIds::None, .has_types = false, .tokens = "embed_tokens"};

constexpr DecoderStructure kCohereDecoder = {.scale_setting = "logit_scale"};
constexpr DecoderStructure kPhiDecoder = {.has_bias = true};

constexpr ModelType kLayerNormTypes[] = {
    {.type = "cohere", .embeddings = "llama", .rotary = "cohere", .layers = &kCohereLayers,
     .decoder = &kCohereDecoder, .prefix = "model."},
    {.type = "cohere2", .embeddings = "llama", .rotary = "cohere", .layers = &kCohere2Layers,
     .decoder = &kCohereDecoder, .prefix = "model."},
    {.type = "nemotron", .embeddings = "llama", .rotary = "gpt_neox", .layers = &kNemotronLayers,
     .heads = &heads::kDecoder, .decoder = &kPlainDecoder, .prefix = "model.",
     .old_prefix = "transformer."},
    {.type = "olmo", .embeddings = "llama", .rotary = "olmo", .layers = &kOlmoLayers,
     .heads = &heads::kLastToken, .decoder = &kPlainDecoder, .prefix = "model."},
    {.type = "opt", .embeddings = "opt", .layers = &kOptLayers, .heads = &heads::kGptQuestions,
     .decoder = &kPlainDecoder, .prefix = "model.decoder.", .old_prefix = "decoder."},
    {.type = "phi", .embeddings = "llama", .tables = &kDroppedTables, .rotary = "gpt_neox",
     .layers = &kPhiLayers, .heads = &heads::kLabels, .decoder = &kPhiDecoder, .prefix = "model."},
    {.type = "stablelm", .embeddings = "llama", .rotary = "gpt_neox", .layers = &kStableLmLayers,
     .heads = &heads::kLabels, .decoder = &kPlainDecoder, .prefix = "model."},
    {.type = "starcoder2", .embeddings = "llama", .tables = &kDroppedTables, .rotary = "llama",
     .layers = &kStarCoder2Layers, .heads = &heads::kLabels, .decoder = &kPlainDecoder,
     .prefix = "model."},
};
// clang-format on

}  // namespace

constinit const Family layer_norm_decoders = kLayerNormTypes;

}  // namespace posenc::families
