// Decoders with the names of GPT-2: GPT-2, whose weights are (in, out), GPT-BigCode (StarCoder),
// GPT-Neo, GPT-J and CodeGen.

#include <cmath>
#include <utility>

#include "models/families/family.h"
#include "models/positions/model_options.h"

namespace posenc::families {
namespace {

constexpr int64_t kCodeGenBlocks = 4;  // of the rows of its projection

// The factor of the scores: 1 where the class does not divide by the root of a head's width.
void read_gpt_scale(const Settings& config, EncoderOptions& options) {
  if (!config.flag("scale_attn_weights")) own_layer(options).attention_scale(1.0);
}

// Each layer may divide its scores by its number.
void read_gpt2(const Settings& config, const ModelType&, EncoderOptions& options) {
  read_gpt_scale(config, options);
  if (!config.flag("scale_attn_by_inverse_layer_idx")) return;
  const TransformerLayerOptions& layer = own_layer(options);
  const auto width = static_cast<double>(layer.d_model() / layer.num_heads());
  const double scale = layer.attention_scale().value_or(1.0 / std::sqrt(width));
  std::vector<TransformerLayerOptions> layers;
  for (int64_t i = 0; i < options.encoder().num_layers(); ++i) {
    TransformerLayerOptions own = layer;
    layers.push_back(own.attention_scale(scale / static_cast<double>(i + 1)));
  }
  options.encoder().layers(std::move(layers));
}

void read_gpt_bigcode(const Settings& config, const ModelType&, EncoderOptions& options) {
  read_gpt_scale(config, options);
  if (config.flag("multi_query")) own_layer(options).num_kv_heads(1);
}

// Which layers have a window: a list of kinds of layers and how often they follow one another.
std::vector<bool> local_layers(const Settings& config, int64_t count) {
  constexpr const char* kTypes = "attention_types";
  const std::string rule =
      "must be lists of \"global\" and \"local\", each with how often it is "
      "repeated, for " +
      config.key("num_hidden_layers") + " " + std::to_string(count) + " layers in all";
  const nlohmann::json all =
      config.has(kTypes) ? config.value(kTypes) : nlohmann::json{{{"global", "local"}, 12}};
  std::vector<bool> local;
  if (!all.is_array()) config.refuse(kTypes, rule);
  for (const nlohmann::json& item : all) {
    if (!item.is_array() || item.size() != 2 || !item[0].is_array() ||
        !item[1].is_number_integer() || item[1] < 0 || item[1] > count)
      config.refuse(kTypes, rule);
    for (int64_t i = 0; i < item[1].get<int64_t>(); ++i) {
      for (const nlohmann::json& kind : item[0]) {
        if (kind != "global" && kind != "local") config.refuse(kTypes, rule);
        local.push_back(kind == "local");
      }
    }
  }
  if (static_cast<int64_t>(local.size()) != count) config.refuse(kTypes, rule);
  return local;
}

// Its attention is causal whatever is_causal is.
void read_gpt_neo(const Settings& config, const ModelType&, EncoderOptions& options) {
  options.causal(true);
  own_layer(options).qkv_bias(false).attention_scale(1.0);
  set_layers(options, local_layers(config, options.encoder().num_layers()),
             [&](TransformerLayerOptions& layer) {
               layer.window(config.integer("window_size", 1, kWidestWindow) - 1);
             });
}

// rotary_dim is the width of what rotates, and not that of a head.
void read_gptj(const Settings& config, const ModelType& model, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  layer.rotary(RotaryEmbeddingOptions(rotary_options_of(config, model, ""))
                   .length_rule(LengthRule::PerCall));
  layer.qkv_bias(false).out_bias(false).parallel(Parallel::SharedNorm);
}

void read_codegen(const Settings& config, const ModelType& model, EncoderOptions& options) {
  read_gptj(config, model, options);
  if (own_layer(options).num_heads() % kCodeGenBlocks != 0)
    config.refuse("num_attention_heads", "must be a multiple of the 4 blocks of qkv_proj");
}

void name_gpt2_layer(const LayerNames& names) {
  const auto transpose = [&](const char* in_file, const char* own) {
    names.map.emplace_back(KeySource::transposed(names.from + in_file + ".weight"), names.to + own);
  };
  transpose(names.keys.query, "self_attn.in_proj_weight");
  transpose(names.keys.out, "self_attn.out_proj.weight");
  transpose(names.keys.wide, "linear1.weight");
  transpose(names.keys.narrow, "linear2.weight");
}

void name_gpt_bigcode_layer(const LayerNames& names) {
  const TransformerLayerOptions& layer = names.config.options.encoder().layer();
  if (!layer.num_kv_heads()) name_heads_of_layer(names);
}

void name_codegen_layer(const LayerNames& names) {
  names.map.emplace_back(
      KeySource::blocks_to_parts(names.from + names.keys.query + ".weight", kCodeGenBlocks),
      names.to + "self_attn.in_proj_weight");
}

// clang-format off
constexpr EncoderLayerKeys kGptKeys[] = {{
    .layer = "h.*.", .query = "attn.c_attn", .out = "attn.c_proj", .wide = "mlp.c_fc",
    .narrow = "mlp.c_proj", .norm1 = "ln_1", .norm2 = "ln_2"}};
constexpr EncoderLayerKeys kGptNeoKeys[] = {{
    .layer = "h.*.", .query = "attn.attention.q_proj", .key = "attn.attention.k_proj",
    .value = "attn.attention.v_proj", .out = "attn.attention.out_proj", .wide = "mlp.c_fc",
    .narrow = "mlp.c_proj", .norm1 = "ln_1", .norm2 = "ln_2"}};
constexpr EncoderLayerKeys kGptJKeys[] = {{
    .layer = "h.*.", .query = "attn.q_proj", .key = "attn.k_proj", .value = "attn.v_proj",
    .out = "attn.out_proj", .wide = "mlp.fc_in", .narrow = "mlp.fc_out", .norm1 = "ln_1",
    .norm2 = ""}};
constexpr EncoderLayerKeys kCodeGenKeys[] = {{
    .layer = "h.*.", .query = "attn.qkv_proj", .out = "attn.out_proj", .wide = "mlp.fc_in",
    .narrow = "mlp.fc_out", .norm1 = "ln_1", .norm2 = ""}};

constexpr EncoderStructure kGpt2Layers = {.keys = kGptKeys, .embeddings = "", .norm_first = true,
    .last_norm = "ln_f", .more = read_gpt2, .layer_names = name_gpt2_layer};
constexpr EncoderStructure kGptBigCodeLayers = {.keys = kGptKeys, .embeddings = "",
    .norm_first = true, .last_norm = "ln_f", .more = read_gpt_bigcode,
    .layer_names = name_gpt_bigcode_layer};
constexpr EncoderStructure kGptNeoLayers = {.keys = kGptNeoKeys, .embeddings = "",
    .norm_first = true, .last_norm = "ln_f", .more = read_gpt_neo};
constexpr EncoderStructure kGptJLayers = {.keys = kGptJKeys, .embeddings = "", .norm_first = true,
    .last_norm = "ln_f", .more = read_gptj};
constexpr EncoderStructure kCodeGenLayers = {.keys = kCodeGenKeys, .embeddings = "",
    .norm_first = true, .last_norm = "ln_f", .more = read_codegen,
    .layer_names = name_codegen_layer};

constexpr EmbeddingsStructure kGptJTables = {.norm = Norm::None, .position_ids = PositionIds::None,
    .has_padding = false, .has_types = false, .types_from_tokens = true, .tokens = "wte"};

constexpr DecoderStructure kGptJDecoder = {.has_bias = true,
    .max_tokens_setting = "max_position_embeddings"};

constexpr DecoderStructure kGpt2Decoder = {.class_name = "GPT2LMHeadModel"};

constexpr ModelType kGptTypes[] = {
    {.type = "codegen", .embeddings = "llama", .tables = &kGptJTables, .rotary = "codegen",
     .rope = rope::kGptJ, .layers = &kCodeGenLayers, .decoder = &kGptJDecoder,
     .prefix = "transformer."},
    {.type = "gpt2", .embeddings = "gpt2", .layers = &kGpt2Layers, .heads = &heads::kGpt,
     .decoder = &kGpt2Decoder, .prefix = "transformer."},
    {.type = "gpt_bigcode", .embeddings = "gpt2", .layers = &kGptBigCodeLayers,
     .heads = &heads::kGptLabels, .decoder = &kPlainDecoder, .prefix = "transformer."},
    {.type = "gpt_neo", .embeddings = "gpt2", .layers = &kGptNeoLayers, .heads = &heads::kGpt,
     .decoder = &kPlainDecoder, .prefix = "transformer."},
    {.type = "gptj", .embeddings = "llama", .tables = &kGptJTables, .rotary = "gptj",
     .rope = rope::kGptJ, .layers = &kGptJLayers, .heads = &heads::kGptQuestions,
     .decoder = &kGptJDecoder, .prefix = "transformer."},
};
// clang-format on

}  // namespace

constinit const Family gpt = kGptTypes;

}  // namespace posenc::families
