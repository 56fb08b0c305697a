// GPT-NeoX (Pythia) and Falcon: one projection of queries, keys and values, and blocks that both
// read the input of a layer.

#include <cmath>

#include "models/families/family.h"

namespace posenc::families {
namespace {

void read_gpt_neox(const Settings& config, const ModelType&, EncoderOptions& options) {
  set_biases(own_layer(options), config.flag("attention_bias"), true);
  if (config.flag("use_parallel_residual")) own_layer(options).parallel(Parallel::TwoNorms);
}

bool is_set(const Settings& config, const char* name) {
  return config.flag_if(name).value_or(false);
}

// The rows of the projection, by three architectures.
void set_falcon_heads(const Settings& config, TransformerLayerOptions& layer) {
  constexpr const char* kHeads = "num_kv_heads";
  const int64_t heads = layer.num_heads();
  const bool is_new = is_set(config, "new_decoder_architecture");
  if (!is_new && is_set(config, "multi_query")) {
    layer.num_kv_heads(1);
    return;
  }
  const int64_t own = config.integer(kHeads, heads, 1, heads);
  const std::string rule = config.key("num_attention_heads") + " " + std::to_string(heads);
  if (!is_new && own != heads) config.refuse(kHeads, "without multi_query must be " + rule);
  if (heads % own != 0) config.refuse(kHeads, "must divide " + rule);
  layer.num_kv_heads(own);
}

void set_falcon_norms(const Settings& config, TransformerLayerOptions& layer) {
  constexpr const char* kNorms = "num_ln_in_parallel_attn";
  const bool is_new = is_set(config, "new_decoder_architecture");
  const bool is_parallel = is_set(config, "parallel_attn");
  if (is_new && !is_parallel)
    config.refuse("parallel_attn", "must be true with new_decoder_architecture");
  const int64_t norms = config.integer(kNorms, is_new ? 2 : 1, 1, is_new ? 2 : 1);
  if (is_parallel) layer.parallel(norms == 2 ? Parallel::TwoNorms : Parallel::SharedNorm);
}

void read_falcon(const Settings& config, const ModelType& model, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  layer.bias(is_set(config, "bias")).norm_bias(true);
  set_falcon_heads(config, layer);
  set_falcon_norms(config, layer);
  if (!is_set(config, "alibi")) return set_rotary(config, model, "", layer);
  const auto width = static_cast<double>(layer.d_model() / layer.num_heads());
  set_causal_alibi(config, options,
                   {.slopes = relative::Slopes::Bloom,
                    .counts_tokens = true,
                    .factor = 1.0 / std::sqrt(width),
                    .bfloat16 = true});
}

// Its class has other names for two norms.
void name_falcon_layer(const LayerNames& names) {
  const TransformerLayerOptions& layer = names.config.options.encoder().layer();
  if (layer.parallel() == Parallel::TwoNorms) {
    add_norm(names.map, names.from + "ln_attn", names.to + "norm1");
    add_norm(names.map, names.from + "ln_mlp", names.to + "norm2");
  }
  const int64_t heads = layer.num_heads(), kv_heads = *layer.num_kv_heads();
  if (!is_set(names.config.settings, "new_decoder_architecture")) {
    if (kv_heads == heads) name_heads_of_layer(names);
    return;
  }
  name_packed(names, [&](const std::string& in_file) {
    return KeySource::groups_to_parts(in_file, kv_heads, heads / kv_heads);
  });
}

// clang-format off
constexpr EncoderLayerKeys kGptNeoXKeys[] = {{
    .layer = "layers.*.", .query = "attention.query_key_value", .out = "attention.dense",
    .wide = "mlp.dense_h_to_4h", .narrow = "mlp.dense_4h_to_h", .norm1 = "input_layernorm",
    .norm2 = "post_attention_layernorm"}};
constexpr EncoderLayerKeys kFalconKeys[] = {{
    .layer = "h.*.", .query = "self_attention.query_key_value", .out = "self_attention.dense",
    .wide = "mlp.dense_h_to_4h", .narrow = "mlp.dense_4h_to_h", .norm1 = "input_layernorm",
    .norm2 = "post_attention_layernorm"}};

constexpr EncoderStructure kGptNeoXLayers = {.keys = kGptNeoXKeys, .embeddings = "",
    .norm_first = true, .rotates = true, .last_norm = "final_layer_norm",
    .more = read_gpt_neox, .layer_names = name_heads_of_layer};
constexpr EncoderStructure kFalconLayers = {.keys = kFalconKeys, .embeddings = "",
    .norm_first = true, .last_norm = "ln_f", .more = read_falcon,
    .layer_names = name_falcon_layer};

constexpr EmbeddingsStructure kGptNeoXTables = {.norm = Norm::None,
    .position_ids = PositionIds::None, .has_padding = false, .has_types = false,
    .tokens = "embed_in"};
constexpr EmbeddingsStructure kFalconTables = {.norm = Norm::None,
    .position_ids = PositionIds::None, .has_padding = false, .has_types = false,
    .has_dropout = false, .tokens = "word_embeddings"};

constexpr DecoderStructure kGptNeoXDecoder = {.other_head = "embed_out"};

constexpr ModelType kGptNeoXTypes[] = {
    {.type = "falcon", .embeddings = "llama", .tables = &kFalconTables, .rotary = "llama",
     .rope = {.head_dim_key = ""}, .layers = &kFalconLayers, .heads = &heads::kGpt,
     .decoder = &kPlainDecoder, .prefix = "transformer."},
    {.type = "gpt_neox", .embeddings = "llama", .tables = &kGptNeoXTables, .rotary = "gpt_neox",
     .rope = {.theta_key = "rotary_emb_base", .partial_key = "rotary_pct"},
     .layers = &kGptNeoXLayers, .heads = &heads::kGpt, .decoder = &kGptNeoXDecoder,
     .prefix = "gpt_neox."},
};
// clang-format on

}  // namespace

constinit const Family gpt_neox = kGptNeoXTypes;

}  // namespace posenc::families
