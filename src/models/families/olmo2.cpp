// OLMo 2, OLMo 3 and EXAONE 4, whose norms are of what a block adds, and not of its input.

#include "models/families/family.h"

namespace posenc::families {
namespace {

void set_norms_after(EncoderOptions& options) {
  own_layer(options).first_norm(false).second_norm(false).post_norms(true).qk_norm(true);
}

void read_olmo2(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  set_kv_heads(config, layer);
  set_biases(layer, config.flag("attention_bias"), false);
  set_norms_after(options);
  layer.qk_norm_whole(true);
}

void read_olmo3(const Settings& config, const ModelType& model, EncoderOptions& options) {
  read_olmo2(config, model, options);
  const auto sliding = sliding_layers(config, options.encoder().num_layers(),
                                      [](int64_t i) { return (i + 1) % 4 != 0; });
  const TransformerLayerOptions plain = own_layer(options);
  set_rotary(config, model, kFull, own_layer(options));
  set_layers(options, sliding, [&](TransformerLayerOptions& layer) {
    layer = plain;
    set_rotary(config, model, kSliding, layer);
    layer.window(window_of(config, options.causal()));
  });
}

// Which layers have a window where nothing says so: all but every n-th, or by a pattern such as
// LLLG, where G, and the last layer, see all tokens.
bool is_exaone_window(const Settings& config, int64_t layer, int64_t count) {
  constexpr const char* kPattern = "sliding_window_pattern";
  if (!config.has("sliding_window")) return false;
  if (!config.value(kPattern).is_string())
    return (layer + 1) % config.integer(kPattern, 1, INT32_MAX) != 0;
  const std::string pattern = config.text(kPattern);
  if (pattern.empty() || pattern.find_first_not_of("LG") != std::string::npos)
    config.refuse(kPattern, "must be a number, or a text of L and G");
  return layer != count - 1 && pattern[static_cast<std::size_t>(layer) % pattern.size()] == 'L';
}

// With a window, only the layers that have it rotate.
void read_exaone4(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  set_kv_heads(config, layer);
  set_biases(layer, false, false);
  set_norms_after(options);
  const int64_t count = options.encoder().num_layers();
  const auto sliding =
      sliding_layers(config, count, [&](int64_t i) { return is_exaone_window(config, i, count); });
  const bool has_windows = config.has("sliding_window");
  set_each_layer(options, [&](int64_t i, TransformerLayerOptions& own) {
    const bool slides = sliding[static_cast<std::size_t>(i)];
    if (!has_windows) return;
    if (slides) {
      own.window(window_of(config, options.causal()));
    } else {
      own.rotary(std::nullopt);
    }
  });
}

// clang-format off
constexpr EncoderLayerKeys kOlmo2Keys[] = {{
    .layer = "layers.*.", .query = "self_attn.q_proj", .key = "self_attn.k_proj",
    .value = "self_attn.v_proj", .out = "self_attn.o_proj", .wide = "mlp.gate_proj",
    .gate = "mlp.up_proj", .narrow = "mlp.down_proj", .norm1 = "", .norm2 = "",
    .post_norm1 = "post_attention_layernorm", .post_norm2 = "post_feedforward_layernorm",
    .q_norm = "self_attn.q_norm", .k_norm = "self_attn.k_norm"}};

constexpr EncoderStructure kOlmo2Layers = layers::llama(read_olmo2, kOlmo2Keys);
constexpr EncoderStructure kExaone4Layers = layers::llama(read_exaone4, kOlmo2Keys);
constexpr EncoderStructure kOlmo3Layers = {.keys = kOlmo2Keys, .embeddings = "",
    .norm_first = true, .norm_kind = NormKind::RMS, .feed_forward = FeedForward::Gated,
    .last_norm = "norm", .dropped = "*.rotary_emb.inv_freq", .more = read_olmo3};

constexpr ModelType kOlmo2Types[] = {
    {.type = "exaone4", .embeddings = "llama", .rotary = "llama", .layers = &kExaone4Layers,
     .heads = &heads::kDecoder, .decoder = &kPlainDecoder, .prefix = "model.",
     .old_prefix = "transformer."},
    {.type = "olmo2", .embeddings = "llama", .rotary = "olmo", .layers = &kOlmo2Layers,
     .heads = &heads::kLastToken, .decoder = &kPlainDecoder, .prefix = "model."},
    {.type = "olmo3", .embeddings = "llama", .rotary = "olmo3", .rope = rope::kOlmo3,
     .layers = &kOlmo3Layers, .heads = &heads::kLastToken, .decoder = &kPlainDecoder,
     .prefix = "model."},
};
// clang-format on

}  // namespace

constinit const Family olmo2 = kOlmo2Types;

}  // namespace posenc::families
