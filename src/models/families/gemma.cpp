// Gemma, Gemma 2, Gemma 3, EmbeddingGemma 2, and the encoder of T5Gemma.

#include <cmath>

#include "models/families/family.h"
#include "models/positions/rope_parameters.h"

namespace posenc::families {
namespace {

constexpr int64_t kWidestTable = 1 << 20;

void scale_by_root(const Settings&, EncoderEmbeddingsOptions& options) {
  options.scale(std::sqrt(static_cast<double>(options.d_model())));
}

constexpr const char* kBothWays = "use_bidirectional_attention";

// Of a decoder, and of an encoder where what transformers computes depends on whether there is
// padding.
void refuse_both_ways(const Settings& config) {
  if (config.flag_if(kBothWays).value_or(false))
    config.refuse(kBothWays, "must be false or null: no token sees those after it");
}

void read_gemma(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  refuse_both_ways(config);
  set_kv_heads(config, layer);
  set_biases(layer, config.flag("attention_bias"), false);
  // The first files say gelu and mean its approximation.
  if (config.text("hidden_act") == "gelu") layer.activation(Activation::GELUTanh);
}

// What Gemma 2 and 3 have in common.
void set_gemma2_layers(const Settings& config, TransformerLayerOptions& layer) {
  set_kv_heads(config, layer);
  set_biases(layer, config.flag("attention_bias"), false);
  const double scalar = config.real("query_pre_attn_scalar");
  if (!(scalar > 0)) config.refuse("query_pre_attn_scalar", "must be positive");
  layer.post_norms(true).attention_scale(1.0 / std::sqrt(scalar));
}

void set_gemma2(const Settings& config, EncoderOptions& options) {
  constexpr const char* kSoftcap = "attn_logit_softcapping";
  TransformerLayerOptions& layer = own_layer(options);
  set_gemma2_layers(config, layer);
  layer.attention_softcap(config.real_if(kSoftcap));
  if (!(layer.attention_softcap().value_or(1.0) > 0)) config.refuse(kSoftcap, "must be positive");
  const auto sliding =
      sliding_layers(config, options.encoder().num_layers(), [](int64_t i) { return i % 2 == 0; });
  set_layers(options, sliding, [&](TransformerLayerOptions& other) {
    other.window(window_of(config, options.causal()));
  });
}

void read_gemma2(const Settings& config, const ModelType&, EncoderOptions& options) {
  refuse_both_ways(config);
  set_gemma2(config, options);
}

// Where there is no mask, padding is found by its id.
void read_t5gemma(const Settings& config, const ModelType&, EncoderOptions& options) {
  options.causal(false).pad_token_id(config.integer_if("pad_token_id"));
  options.masks_padding(options.pad_token_id().has_value());
  set_gemma2(config, options);
}

// The classes of heads run the encoder alone, or the decoder too, by a setting of the whole.
void check_t5gemma_head(const EncoderConfig& encoder) {
  const Settings& whole = encoder.whole;
  if (whole.text("model_type", "") != "t5gemma")
    whole.refuse("model_type", "must be t5gemma, whose classes have the heads");
  if (whole.flag("is_encoder_decoder", true))
    whole.refuse(
        "is_encoder_decoder",
        "must be false (by default it is true), of a head on the encoder alone: posenc has "
        "no decoder of T5Gemma");
}

// The whole's padding is that of the last token.
void check_t5gemma_sequence_head(const EncoderConfig& encoder) {
  check_t5gemma_head(encoder);
  const Settings& whole = encoder.whole;
  constexpr const char* kPad = "pad_token_id";
  const auto pad = whole.mentions(kPad)
                       ? whole.integer_if(kPad)
                       : whole.part("decoder").of(encoder.model.type).integer_if(kPad);
  if (pad != encoder.settings.integer_if(kPad))
    whole.refuse(kPad, "must be that of the encoder, by which it finds padding");
}

void read_gemma3(const Settings& config, const ModelType& model, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  set_gemma2_layers(config, layer);
  layer.qk_norm(true);
  const bool halves = config.flag_if(kBothWays).value_or(false);
  const bool is_causal = options.causal();
  options.causal(is_causal && !halves);
  const int64_t every = config.integer("sliding_window_pattern", 6, 1, INT32_MAX);
  const auto sliding = sliding_layers(config, options.encoder().num_layers(),
                                      [&](int64_t i) { return (i + 1) % every != 0; });
  const TransformerLayerOptions plain = layer;
  set_rotary(config, model, kFull, layer);
  set_layers(options, sliding, [&](TransformerLayerOptions& other) {
    other = plain;
    set_rotary(config, model, kSliding, other);
    // transformers halves the window for attention in both directions, where it does not count the
    // token itself.
    const int64_t whole = window_of(config, options.causal());
    other.window(halves ? whole / 2 + (is_causal ? 0 : 1) : whole);
  });
}

// The layer types that the class makes of a configuration: the last layer is always of full
// attention.
Settings gemma2_settings(const Settings& config, const ModelType& model, int64_t layers) {
  const int64_t every = config.integer("sliding_window_pattern", 6, 1, INT32_MAX);
  auto sliding = sliding_layers(config, layers, [&](int64_t i) { return (i + 1) % every != 0; });
  sliding.back() = false;
  nlohmann::json settings = config.object(), types = nlohmann::json::array();
  for (const bool one : sliding) types.push_back(one ? kSliding : kFull);
  settings["layer_types"] = std::move(types);
  return config.with(std::move(settings)).of(model.type);
}

// Each layer has sizes of its own: those of per_layer_config, where there is one.
void read_embedding_gemma2(const Settings& given, const ModelType& model, EncoderOptions& options) {
  const int64_t layers = options.encoder().num_layers();
  const Settings config = gemma2_settings(given, model, layers);
  TransformerLayerOptions& layer = own_layer(options);
  set_biases(layer, config.flag("attention_bias"), false);
  layer.qk_norm(true).value_norm(true).post_norms(true).attention_scale(1.0).output_factor(true);
  layer.per_layer_input(config.integer("hidden_size_per_layer_input", 1, kWidestTable));
  const bool has_own_sizes = config.mentions("per_layer_config");
  std::vector<TransformerLayerOptions> all;
  for (int64_t i = 0; i < layers; ++i) {
    const bool is_full = config.value("layer_types")[static_cast<std::size_t>(i)] == kFull;
    TransformerLayerOptions own = layer;
    const int64_t kv_heads =
        has_own_sizes || !is_full
            ? number_in_layer(config, i, "num_key_value_heads").value_or(layer.num_heads())
            : config.integer("num_global_key_value_heads", 1, 1, layer.num_heads());
    if (kv_heads < 1 || layer.num_heads() % kv_heads != 0) {
      config.refuse("num_key_value_heads", "must divide " + config.key("num_attention_heads") +
                                               " " + std::to_string(layer.num_heads()));
    }
    set_rotary(config, model, is_full ? kFull : kSliding, own);
    own.num_kv_heads(kv_heads);
    if (!is_full) own.window(config.integer("sliding_window", 0, kWidestWindow));
    all.push_back(std::move(own));
  }
  layer = all.back();
  options.encoder().layers(std::move(all));
  options.output_dim(config.integer("embedding_dim", 1, kWidestTable));
}

void name_per_layer_input(const LayerNames& names) {
  names.map.emplace_back(names.from + "ple_block.per_layer_input_gate.*",
                         names.to + "per_layer_gate.*");
  names.map.emplace_back(names.from + "ple_block.per_layer_projection.*",
                         names.to + "per_layer_projection.*");
  add_norm(names.map, names.from + "ple_block.post_per_layer_input_norm", names.to + "post_norm3");
  names.map.emplace_back(names.from + "layer_scalar", names.to + "output_factor");
}

void name_gemma2_parts(KeyMap& map, const EncoderConfig&) {
  map.emplace_back("ple.per_layer_model_projection.*", "encoder.per_layer_projection.*");
  add_norm(map, "ple.per_layer_projection_norm", "encoder.per_layer_norm");
  map.emplace_back("embedding_projection.*", "output_projection.*");
}

// clang-format off
constexpr EncoderLayerKeys kGemma3Keys[] = {{
    .layer = "layers.*.",
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",
    .out = "self_attn.o_proj", .wide = "mlp.gate_proj", .gate = "mlp.up_proj",
    .narrow = "mlp.down_proj", .norm1 = "input_layernorm", .norm2 = "pre_feedforward_layernorm",
    .post_norm1 = "post_attention_layernorm", .post_norm2 = "post_feedforward_layernorm",
    .q_norm = "self_attn.q_norm", .k_norm = "self_attn.k_norm"}};

constexpr EncoderLayerKeys kT5GemmaKeys[] = {{
    .layer = "layers.*.",
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",
    .out = "self_attn.o_proj", .wide = "mlp.gate_proj", .gate = "mlp.up_proj",
    .narrow = "mlp.down_proj", .norm1 = "pre_self_attn_layernorm",
    .norm2 = "pre_feedforward_layernorm", .post_norm1 = "post_self_attn_layernorm",
    .post_norm2 = "post_feedforward_layernorm"}};

constexpr EncoderStructure plus_one(EncoderStructure structure, const char* reads = "") {
  structure.norm_kind = NormKind::RMSPlusOne;
  structure.reads = reads;
  return structure;
}
constexpr EncoderStructure kGemmaLayers = plus_one(layers::llama(read_gemma));
constexpr EncoderStructure kGemma2Layers =
    plus_one(layers::llama(read_gemma2, kGemma3Keys), "attn_logit_softcapping");
constexpr EncoderStructure t5gemma() {
  EncoderStructure structure = plus_one(layers::llama(read_t5gemma, kT5GemmaKeys), "attn_logit_softcapping");
  structure.beside = "decoder";
  return structure;
}
constexpr EncoderStructure kT5GemmaLayers = t5gemma();
// transformers ignores a softcap of scores.
constexpr EncoderStructure kGemma3Layers = {.keys = kGemma3Keys, .embeddings = "", .norm_first = true,
    .norm_kind = NormKind::RMSPlusOne, .feed_forward = FeedForward::Gated, .last_norm = "norm",
    .dropped = "*.rotary_emb.inv_freq", .reads = "attn_logit_softcapping", .more = read_gemma3};

constexpr EncoderStructure kEmbeddingGemma2Layers = {.keys = kGemma3Keys, .embeddings = "",
    .norm_first = true, .norm_kind = NormKind::RMS, .feed_forward = FeedForward::Gated,
    .last_norm = "norm", .more = read_embedding_gemma2, .names = name_gemma2_parts,
    .layer_names = name_per_layer_input};

constexpr EmbeddingsStructure kGemmaTables = {.norm = Norm::None, .position_ids = PositionIds::None,
    .has_types = false, .has_dropout = false, .tokens = "embed_tokens", .more = scale_by_root};

constexpr HeadStructure on_t5gemma(HeadStructure head, void (*check)(const EncoderConfig&)) {
  head.out = "score.out_proj";
  head.has_bias = true;
  head.check = check;
  return head;
}
constexpr HeadStructures kT5GemmaHeads = {.sequence = on_t5gemma(heads::kOfLastToken, check_t5gemma_sequence_head),
    .token = on_t5gemma(heads::kToken, check_t5gemma_head)};

constexpr DecoderStructure kGemmaDecoder = {.check = refuse_both_ways};
constexpr DecoderStructure kGemma2Decoder = {.softcap_setting = "final_logit_softcapping",
    .check = refuse_both_ways};
constexpr DecoderStructure kGemma3Decoder = {.class_name = "Gemma3ForCausalLM",
    .softcap_setting = "final_logit_softcapping", .check = refuse_both_ways};

constexpr ModelType kGemmaTypes[] = {
    {.type = "embedding_gemma2", .part = "text_config"},
    {.type = "embedding_gemma2_text", .embeddings = "llama", .tables = &kGemmaTables,
     .rotary = "gemma4", .rope = rope::kGemma4, .layers = &kEmbeddingGemma2Layers,
     .prefix = "language_model."},
    {.type = "gemma", .embeddings = "llama", .tables = &kGemmaTables, .rotary = "llama",
     .layers = &kGemmaLayers, .heads = &heads::kLabels, .decoder = &kGemmaDecoder,
     .prefix = "model."},
    {.type = "gemma2", .embeddings = "llama", .tables = &kGemmaTables, .rotary = "llama",
     .layers = &kGemma2Layers, .heads = &heads::kLabels, .decoder = &kGemma2Decoder,
     .prefix = "model."},
    {.type = "gemma3_text", .embeddings = "llama", .tables = &kGemmaTables, .rotary = "gemma3",
     .rope = rope::kGemma3, .layers = &kGemma3Layers, .heads = &heads::kLastToken,
     .decoder = &kGemma3Decoder, .prefix = "model."},
    {.type = "t5_gemma_module", .embeddings = "llama", .tables = &kGemmaTables, .rotary = "llama",
     .layers = &kT5GemmaLayers, .heads = &kT5GemmaHeads, .prefix = "model.encoder.",
     .old_prefix = "encoder."},
    {.type = "t5gemma", .part = "encoder"},
};
// clang-format on

}  // namespace

constinit const Family gemma = kGemmaTypes;

}  // namespace posenc::families
