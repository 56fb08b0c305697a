// Decoders, and encoders made of them: Llama, Mistral, Qwen, EuroBERT, UltraBERT, ESMC,
// BLOOM and MPT.

#include <algorithm>
#include <cmath>

#include "models/families/family.h"

namespace posenc::families {
namespace {

// Qwen's rule: the layers from max_window_layers on, if windows are used at all.
void set_qwen_windows(const Settings& config, EncoderOptions& options) {
  const bool uses = config.flag("use_sliding_window") && config.has("sliding_window");
  const auto sliding = sliding_layers(config, options.encoder().num_layers(), [&](int64_t i) {
    return uses && i >= config.integer("max_window_layers", INT64_MIN, INT64_MAX);
  });
  set_layers(options, sliding, [&](TransformerLayerOptions& layer) {
    if (!uses) {
      config.refuse("use_sliding_window", "must be true for layers of type sliding_attention");
    }
    layer.window(window_of(config, options.causal()));
  });
}

void read_llama(const Settings& config, const ModelType&, EncoderOptions& options) {
  set_kv_heads(config, own_layer(options));
  set_biases(own_layer(options), config.flag("attention_bias"), config.flag("mlp_bias"));
}

void read_mistral(const Settings& config, const ModelType&, EncoderOptions& options) {
  set_kv_heads(config, own_layer(options));
  set_biases(own_layer(options), false, false);
  if (config.has("sliding_window")) own_layer(options).window(window_of(config, options.causal()));
}

void read_qwen2(const Settings& config, const ModelType&, EncoderOptions& options) {
  set_kv_heads(config, own_layer(options));
  own_layer(options).bias(false).qkv_bias(true);
  set_qwen_windows(config, options);
}

void read_qwen3(const Settings& config, const ModelType&, EncoderOptions& options) {
  set_kv_heads(config, own_layer(options));
  set_biases(own_layer(options), config.flag("attention_bias"), false);
  own_layer(options).qk_norm(true);
  set_qwen_windows(config, options);
}

// Of older files: the window of each layer, where 0 and null mean none.
Settings with_layer_types(const Settings& config, const ModelType& model) {
  constexpr const char *kWindows = "attention_windows", *kTypes = "layer_types";
  if (!config.mentions(kWindows)) return config;
  const nlohmann::json& windows = config.object().at(kWindows);
  if (!windows.is_array()) config.refuse(kWindows, "must be a list of the window of each layer");
  nlohmann::json settings = config.object(), types = nlohmann::json::array();
  for (auto window = windows.rbegin(); window != windows.rend(); ++window) {
    const bool has_window = !window->is_null() && *window != 0;
    types.insert(types.begin(), has_window ? kSliding : kFull);
    if (has_window) settings["sliding_window"] = *window;  // in the end that of the first
  }
  if (!config.has(kTypes)) settings[kTypes] = std::move(types);
  return config.with(std::move(settings)).of(model.type);
}

void read_ultrabert(const Settings& given, const ModelType& model, EncoderOptions& options) {
  const Settings config = with_layer_types(given, model);
  read_llama(config, model, options);
  TransformerLayerOptions& layer = own_layer(options);
  const auto sliding = sliding_layers(config, options.encoder().num_layers(),
                                      [](int64_t i) { return (i + 1) % 3 != 0; });
  const bool has_full = std::find(sliding.begin(), sliding.end(), false) != sliding.end();
  const TransformerLayerOptions plain = layer;
  set_rotary(config, model, has_full ? kFull : kSliding, layer);
  set_layers(options, sliding, [&](TransformerLayerOptions& other) {
    other = plain;
    set_rotary(config, model, kSliding, other);
    other.window(config.integer("sliding_window", 0, kWidestWindow));
  });
}

void read_esmc(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  if (config.integer("num_key_value_heads", layer.num_heads(), 1, INT32_MAX) != layer.num_heads()) {
    config.refuse("num_key_value_heads", "must be " + config.key("num_attention_heads") + " " +
                                             std::to_string(layer.num_heads()));
  }
  constexpr double kLayersOfScale = 36.0;
  const auto layers = static_cast<double>(options.encoder().num_layers());
  set_biases(layer, config.flag("attention_bias"), config.flag("mlp_bias"));
  layer.qk_norm(true).qk_norm_whole(true).residual_scale(1.0 / std::sqrt(layers / kLayersOfScale));
  options.encoder().final_norm_bias(false);
}

// clang-format off
constexpr EncoderStructure kUltraBertLayers = {.keys = layers::kLlamaKeys, .embeddings = "",
    .norm_first = true, .norm_kind = NormKind::RMS, .feed_forward = FeedForward::Gated,
    .last_norm = "norm", .more = read_ultrabert};
constexpr EncoderStructure kEsmcLayers = {.keys = layers::kLlamaKeys, .embeddings = "",
    .norm_first = true, .feed_forward = FeedForward::Gated, .rotates = true, .last_norm = "norm",
    .dropped = "*.rotary_emb.inv_freq", .more = read_esmc};
constexpr EncoderStructure kLlamaLayers = layers::llama(read_llama);
constexpr EncoderStructure kMistralLayers = layers::llama(read_mistral);
constexpr EncoderStructure kQwen2Layers = layers::llama(read_qwen2);
constexpr EncoderStructure kQwen3Layers = layers::llama(read_qwen3);
constexpr HeadStructures kEuroBertHeads = {
    .sequence = {.out = "classifier", .first_word = "bos", .may_be_late = true, .dense = "dense",
                 .activation = "gelu"},
    .token = heads::kToken,
    .masked = {.out = "lm_head", .bias_setting = "mlp_bias", .is_tied = true}};
// What the class calls head.decoder is cls in its files.
constexpr HeadStructures kUltraBertHeads = {
    .sequence = {.out = "classifier", .first_word = "cls"}, .token = heads::kToken, .question = heads::kQuestion,
    .masked = {.out = "cls", .dense = "head.linear1", .dense_setting = "prediction_head_size",
               .has_dense_bias = false, .dense2 = "head.linear2", .activation = "gelu_pytorch_tanh",
               .other_out = "head.decoder", .has_bias = false, .is_tied = true}};
constexpr HeadStructures kEsmcHeads = {.sequence = heads::of_first("tanh"), .token = {.out = "score"},
    .masked = {.out = "lm_head.decoder", .dense = "lm_head.dense", .activation = "gelu",
               .norm = "lm_head.layer_norm"}};
// clang-format on

void read_bloom(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  layer.d_ff(4 * layer.d_model()).activation(Activation::GELUTanh);
  layer.residual_of_norm(config.flag("apply_residual_connection_post_layernorm"));
  if (config.flag("slow_but_exact") && config.integer("pretraining_tp", 1, INT32_MAX) > 1)
    config.refuse("slow_but_exact",
                  "must be false with a pretraining_tp of more than 1, as the "
                  "class would leave out two biases of a layer");
  set_causal_alibi(config, options, {.slopes = relative::Slopes::Bloom, .counts_tokens = true});
}

// MptModel takes 8 for the largest bias, whatever `alibi_bias_max` is, and has ALiBi always.
void read_mpt(const Settings& config, const ModelType&, EncoderOptions& options) {
  const Settings own = config.inside_if_given("attn_config");
  constexpr const char* kRate[] = {"attn_pdrop"};
  const double rate = own.has(kRate[0]) ? own.real(kRate[0]) : 0.0;
  if (!(rate >= 0.0 && rate < 1.0)) own.refuse(kRate[0], "must be in [0, 1)");
  TransformerLayerOptions& layer = own_layer(options);
  layer.bias(false).norm_bias(false).d_ff(4 * layer.d_model());
  layer.dropouts(LayerDropouts{rate, rate, 0.0, rate, 0.0});
  const double scale = own.real_if("softmax_scale").value_or(0.0);
  if (own.has("softmax_scale")) layer.attention_scale(scale);
  if (own.real_if("clip_qkv").value_or(0.0) != 0.0) set_clip(own, layer);  // 0 is none
  set_causal_alibi(config, options, {.slopes = relative::Slopes::Mpt});
}

// What MptForCausalLM does not read: a model with another value is not the one that it computes.
void check_mpt(const Settings& config) {
  const Settings attention = config.inside_if_given("attn_config");
  if (!attention.flag("alibi", true)) attention.refuse("alibi", "must be true");
  if (attention.flag("qk_ln", false)) attention.refuse("qk_ln", "must be false");
  constexpr int64_t kRatio = 4;
  if (config.integer("expansion_ratio", kRatio, 1, INT32_MAX) != kRatio)
    config.refuse("expansion_ratio", "must be 4");
}

// clang-format off
constexpr EncoderLayerKeys kBloomKeys[] = {{
    .layer = "h.*.", .query = "self_attention.query_key_value", .out = "self_attention.dense",
    .wide = "mlp.dense_h_to_4h", .narrow = "mlp.dense_4h_to_h", .norm1 = "input_layernorm",
    .norm2 = "post_attention_layernorm"}};

const EncoderLayerKeys kMptKeys[] = {{
    .layer = "blocks.*.", .query = "attn.Wqkv", .out = "attn.out_proj", .wide = "ffn.up_proj",
    .narrow = "ffn.down_proj", .norm1 = "norm_1", .norm2 = "norm_2"}};

constexpr EncoderStructure kBloomLayers = {.keys = kBloomKeys, .embeddings = "",
    .norm_first = true, .last_norm = "ln_f", .more = read_bloom,
    .layer_names = name_heads_of_layer};
constexpr EncoderStructure kMptLayers = {.keys = kMptKeys, .embeddings = "", .norm_first = true,
    .last_norm = "norm_f", .more = read_mpt};

constexpr EmbeddingsStructure kBloomTables = {.position_ids = PositionIds::None, .has_padding = false,
    .has_types = false, .has_dropout = false, .norm_name = "word_embeddings_layernorm"};
constexpr EmbeddingsStructure kEsmcTables = {.norm = Norm::None, .position_ids = PositionIds::None,
    .has_padding = false, .has_types = false, .has_dropout = false, .tokens = "embed_tokens"};
constexpr EmbeddingsStructure kMptTables = {.norm = Norm::None, .position_ids = PositionIds::None,
    .has_padding = false, .has_types = false, .has_dropout = false, .tokens = "wte"};

constexpr DecoderStructure kMptDecoder = {.max_tokens_setting = "max_seq_len", .check = check_mpt};

constexpr ModelType kDecoderTypes[] = {
    {.type = "bloom", .embeddings = "nomic", .tables = &kBloomTables, .layers = &kBloomLayers,
     .heads = &heads::kGpt, .decoder = &kPlainDecoder, .prefix = "transformer."},
    {.type = "esmc", .embeddings = "llama", .tables = &kEsmcTables, .rotary = "llama",
     .layers = &kEsmcLayers, .heads = &kEsmcHeads, .prefix = "esmc."},
    {.type = "eurobert", .embeddings = "llama", .rotary = "llama", .layers = &kLlamaLayers,
     .heads = &kEuroBertHeads, .prefix = "model."},
    {.type = "llama", .embeddings = "llama", .rotary = "llama", .layers = &kLlamaLayers,
     .heads = &heads::kDecoder, .decoder = &kPlainDecoder, .prefix = "model.",
     .old_prefix = "transformer."},
    {.type = "mistral", .embeddings = "llama", .rotary = "llama", .layers = &kMistralLayers,
     .heads = &heads::kDecoder, .decoder = &kPlainDecoder, .prefix = "model."},
    {.type = "mpt", .embeddings = "llama", .tables = &kMptTables, .layers = &kMptLayers,
     .heads = &heads::kGpt, .decoder = &kMptDecoder, .prefix = "transformer."},
    {.type = "qwen2", .embeddings = "llama", .rotary = "llama", .layers = &kQwen2Layers,
     .heads = &heads::kDecoder, .decoder = &kPlainDecoder, .prefix = "model.",
     .old_prefix = "transformer."},
    {.type = "qwen3", .embeddings = "llama", .rotary = "llama", .layers = &kQwen3Layers,
     .heads = &heads::kDecoder, .decoder = &kPlainDecoder, .prefix = "model.",
     .old_prefix = "transformer."},
    {.type = "ultrabert", .embeddings = "llama", .rotary = "gemma3", .rope = rope::kUltraBert,
     .layers = &kUltraBertLayers, .heads = &kUltraBertHeads, .prefix = "ultrabert.",
     .old_prefix = "model."},
};
// clang-format on

}  // namespace

constinit const Family decoders = kDecoderTypes;

}  // namespace posenc::families
