// XLNet, which has the relative positions of Transformer-XL, XLM and FlauBERT.

#include <algorithm>

#include "models/families/family.h"
#include "posenc/positions/sinusoid/preset.h"

namespace posenc::families {
namespace {

void read_xlm(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  layer.d_ff(4 * layer.d_model())
      .activation(config.flag("gelu_activation") ? Activation::GELU : Activation::ReLU);
  options.zero_padding(true).zero_hidden_padding(true).pad_token_id(
      config.integer_if("pad_token_id"));
}

bool embeds_languages(const Settings& config) {
  return config.flag("use_lang_emb") && config.integer("n_langs", 1, INT32_MAX) > 1;
}

void check_softmax(const EncoderConfig& config) {
  if (config.settings.flag("asm", false)) config.settings.refuse("asm", "must be false");
}

// The other head for questions of XLM and XLNet searches for the ends of the most probable
// beginnings.
void check_simple(const EncoderConfig& config) {
  constexpr const char* kArchitectures = "architectures";
  const nlohmann::json& classes = config.settings.value(kArchitectures);
  const bool is_list = classes.is_array() && !classes.empty() && classes[0].is_string();
  if (is_list && classes[0].get<std::string>().ends_with("ForQuestionAnswering")) {
    config.settings.refuse(kArchitectures,
                           "must be ...ForQuestionAnsweringSimple: a search for the end of each "
                           "start is not supported");
  }
}

// clang-format off
constexpr HeadStructure kSimpleQuestion = {.out = "qa_outputs",
    .class_ending = "ForQuestionAnsweringSimple", .check = check_simple};

const EncoderLayerKeys kXlmKeys[] = {{
    .layer = "", .query = "attentions.*.q_lin", .key = "attentions.*.k_lin",
    .value = "attentions.*.v_lin", .out = "attentions.*.out_lin", .wide = "ffns.*.lin1",
    .narrow = "ffns.*.lin2", .norm1 = "layer_norm1.*", .norm2 = "layer_norm2.*"}};

constexpr EncoderStructure kXlmLayers = {.keys = kXlmKeys, .embeddings = "",
    .dropped = "lang_embeddings.*", .beside = "lang_embeddings", .has_beside = embeds_languages,
    .more = read_xlm};

constexpr EmbeddingsStructure kXlmTables = {.has_types = false, .types_from_tokens = true,
    .tokens = "embeddings", .norm_name = "layer_norm_emb"};

constexpr HeadStructures kXlmHeads = {
    .sequence = {.out = "sequence_summary.summary", .rows = Rows::Pooled, .is_summary = true},
    .token = heads::kToken, .question = kSimpleQuestion,
    .masked = {.out = "pred_layer.proj", .is_tied = true, .class_ending = "WithLMHeadModel",
               .check = check_softmax}};
// clang-format on

// Without a memory, same_length leaves a token of a causal model no other.
void read_xlnet(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  const int64_t width = layer.d_model(), head_dim = width / layer.num_heads();
  const int64_t stated = config.integer("d_head", head_dim, INT64_MIN, INT64_MAX);
  if (stated != 0 && stated != head_dim) {  // to transformers, zero says nothing
    config.refuse("d_head", "must be " + config.key("hidden_size") + " / " +
                                config.key("num_attention_heads") + ", " +
                                std::to_string(head_dim));
  }
  if (width % 2 != 0) config.refuse("hidden_size", "must be even: half of the channels are sines");
  const std::string type = config.text("attn_type");
  if (type != "bi" && type != "uni") config.refuse("attn_type", "must be bi or uni");
  options.causal(type == "uni");
  if (options.causal() && config.flag("same_length")) layer.window(0);
  const double dropped = layer.dropout();
  layer.dropouts(LayerDropouts{dropped, dropped, dropped, dropped, 0.0})
      .qkv_bias(false)
      .out_bias(false)
      .transformer_xl(
          TransformerXLOptions(preset("transformer_xl", width))
              .clamp_len(std::max<int64_t>(0, config.integer("clamp_len", INT64_MIN, INT32_MAX)))
              .bi_data(config.flag("bi_data"))
              .segments(true)
              .mask_embedding(true));
}

void name_xlnet(KeyMap& map, const EncoderConfig&) {
  map.emplace_back("mask_emb", "encoder.shifted_positions.mask_emb");
}

// The attention, whose projections have an axis of heads.
void name_xlnet_layer(const LayerNames& names) {
  const auto& [map, config, keys, from, to] = names;
  const int64_t heads = config.options.encoder().layer().num_heads();
  const std::string in_file = from + "rel_attn.", own = to + "self_attn.";
  const auto rows = [&](const char* name) {
    return KeySource::heads_to_rows(in_file + name, heads);
  };
  map.emplace_back(KeySources{rows("q"), rows("k"), rows("v")}, own + "in_proj_weight");
  map.emplace_back(KeySource::heads_to_columns(in_file + "o", heads), own + "out_proj.weight");
  map.emplace_back(rows("r"), own + "position_proj.weight");
  map.emplace_back(in_file + "r_w_bias", own + "content_bias");
  map.emplace_back(in_file + "r_r_bias", own + "position_bias");
  map.emplace_back(in_file + "r_s_bias", own + "segment_bias");
  map.emplace_back(in_file + "seg_embed", own + "segment_embed");
}

// clang-format off
constexpr EncoderLayerKeys kXlnetKeys[] = {{
    .layer = "layer.*.", .wide = "ff.layer_1", .narrow = "ff.layer_2",
    .norm1 = "rel_attn.layer_norm", .norm2 = "ff.layer_norm"}};

constexpr EncoderStructure kXlnetLayers = {.keys = kXlnetKeys, .embeddings = "",
    .raw_hidden_states = true, .more = read_xlnet, .names = name_xlnet,
    .layer_names = name_xlnet_layer};

constexpr EmbeddingsStructure kXlnetTables = {.norm = Norm::None, .position_ids = PositionIds::None,
    .has_padding = false, .has_types = false, .tokens = "word_embedding"};

constexpr HeadStructure kXlnetSequence = {.out = "logits_proj", .rows = Rows::Pooled,
    .dense = "sequence_summary.summary", .activation_setting = "summary_activation",
    .is_summary = true};
constexpr HeadStructures kXlnetHeads = {.sequence = kXlnetSequence, .token = heads::kToken,
    .question = kSimpleQuestion, .masked = {.lacks = "two-stream attention"},
    .choice = kXlnetSequence};

constexpr ModelType kXlnetTypes[] = {
    {.type = "flaubert", .embeddings = "gpt2", .tables = &kXlmTables,
     .layers = &kXlmLayers, .heads = &kXlmHeads, .prefix = "transformer."},
    {.type = "xlm", .embeddings = "gpt2", .tables = &kXlmTables, .layers = &kXlmLayers,
     .heads = &kXlmHeads, .prefix = "transformer."},
    {.type = "xlnet", .embeddings = "llama", .tables = &kXlnetTables, .layers = &kXlnetLayers,
     .heads = &kXlnetHeads, .prefix = "transformer."},
};
// clang-format on

}  // namespace

constinit const Family xlnet = kXlnetTypes;

}  // namespace posenc::families
