// posenc-budget: a function of each class
// What the layers of Llama, ModernBERT and classes like them read from config.json.

#include "models/encoder/layer_settings.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "models/config/t5_layers.h"
#include "models/embeddings/presets.h"
#include "models/positions/model_options.h"
#include "models/positions/rope_parameters.h"
#include "posenc/positions/sinusoid/preset.h"

namespace posenc {
namespace {

constexpr int64_t kWidestWindow = int64_t{1} << 31;
constexpr int64_t kWidestHead = int64_t{1} << 20;
constexpr const char* kSliding = "sliding_attention";
constexpr const char* kFull = "full_attention";

TransformerLayerOptions& own_layer(EncoderOptions& options) { return options.encoder().layer(); }

void set_kv_heads(const Settings& config, TransformerLayerOptions& layer) {
  if (!config.has("num_key_value_heads")) return;
  const int64_t heads = layer.num_heads();
  const int64_t kv_heads = config.integer("num_key_value_heads", 1, heads);
  if (heads % kv_heads != 0) {
    config.refuse("num_key_value_heads",
                  "must divide " + config.key("num_attention_heads") + " " + std::to_string(heads));
  }
  if (kv_heads != heads) layer.num_kv_heads(kv_heads);
}

void set_biases(TransformerLayerOptions& layer, bool attention, bool feed_forward) {
  layer.qkv_bias(attention).out_bias(attention);
  layer.linear1_bias(feed_forward).linear2_bias(feed_forward);
}

// Decoders that may be configured as encoders: `is_causal: false`, as for sentence vectors.
void set_causal(const Settings& config, EncoderOptions& options) {
  options.causal(config.flag("is_causal", true));
}

// `sliding_window` counts the token itself in causal layers, as transformers does.
int64_t window_of(const Settings& config, bool is_causal) {
  return is_causal ? config.integer("sliding_window", 1, kWidestWindow) - 1
                   : config.integer("sliding_window", 0, kWidestWindow);
}

// Which layers have a window: layer_types, or `is_sliding` of the number of a layer without them.
template <typename Rule>
std::vector<bool> sliding_layers(const Settings& config, int64_t count, const Rule& is_sliding) {
  std::vector<bool> sliding;
  if (!config.has("layer_types")) {
    for (int64_t i = 0; i < count; ++i) sliding.push_back(is_sliding(i));
    return sliding;
  }
  const nlohmann::json& types = config.value("layer_types");
  if (!types.is_array() || static_cast<int64_t>(types.size()) != count) {
    config.refuse("layer_types", "must be a list of the type of each of " +
                                     config.key("num_hidden_layers") + " " + std::to_string(count) +
                                     " layers");
  }
  for (const nlohmann::json& type : types) {
    if (type != kSliding && type != kFull) {
      config.refuse("layer_types", "must have full_attention and sliding_attention only", type);
    }
    sliding.push_back(type == kSliding);
  }
  return sliding;
}

// The options of each layer: `full`, or those of `slide(full)` where it has a window.
template <typename Slide>
void set_layers(EncoderOptions& options, const std::vector<bool>& sliding, const Slide& slide) {
  std::optional<TransformerLayerOptions> other;
  std::vector<TransformerLayerOptions> layers;
  for (const bool one : sliding) {
    if (one && !other) {
      other = own_layer(options);
      slide(*other);
    }
    layers.push_back(one ? *other : own_layer(options));
  }
  if (other) options.encoder().layers(std::move(layers));
}

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

// A number of layers after which one is not sliding: 3 in ModernBERT, 6 in Gemma 3.
int64_t pattern_of(const Settings& config, const char* name, int64_t default_value) {
  return config.integer(name, default_value, 1, INT32_MAX);
}

}  // namespace

void set_rotary(const Settings& config, const hf::ModelType& model, const std::string& layer_type,
                TransformerLayerOptions& layer) {
  const int64_t head_dim = rotary_head_dim(config, model, layer_type);
  if (head_dim > kWidestHead) {
    config.refuse("head_dim", "must be at most " + std::to_string(kWidestHead));
  }
  if (head_dim * layer.num_heads() != layer.d_model()) layer.head_dim(head_dim);
  // The frequencies of a call do not depend on the calls before it.
  layer.rotary(RotaryEmbeddingOptions(rotary_options_of(config, model, layer_type))
                   .length_rule(LengthRule::PerCall));
}

void without_biases(const Settings&, const hf::ModelType&, EncoderOptions& options) {
  set_biases(own_layer(options), false, false);
}

void without_wide_bias(const Settings&, const hf::ModelType&, EncoderOptions& options) {
  own_layer(options).linear1_bias(false);
}

// MPNetEncoder has a table with the number of rows in config.json, but always computes 32 buckets.
void read_mpnet(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
  constexpr int64_t kBuckets = 32, kMostRows = 1 << 20;
  constexpr const char* kRows = "relative_attention_num_buckets";
  const int64_t rows = config.integer(kRows, 1, kMostRows);
  if (rows < kBuckets) {
    config.refuse(kRows, "must be at least 32, the number of buckets that MPNet computes");
  }
  options.encoder().relative(
      relative::Buckets{.num_buckets = kBuckets, .spare_rows = rows - kBuckets});
}

// The boxes count only beside the places. The tables are those of the text; images are refused.
void read_layoutlmv3(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
  constexpr int64_t kMostBuckets = 1 << 20;
  if (!config.flag("text_embed", true)) {
    config.refuse("text_embed",
                  "must be true, since posenc encodes no images with this model_type");
  }
  if (!config.flag("has_relative_attention_bias")) return;
  const auto buckets = [&](const char* bins, const char* most) {
    return relative::Buckets{.num_buckets = config.integer(bins, 1, kMostBuckets),
                             .max_distance = config.integer(most, 1, INT32_MAX)};
  };
  const TransformerLayerOptions& layer = own_layer(options);
  DocumentPositionBiasOptions own(layer.num_heads(), buckets("rel_pos_bins", "max_rel_pos"));
  if (config.flag("has_spatial_attention_bias"))
    own.boxes(buckets("rel_2d_pos_bins", "max_rel_2d_pos"));
  const auto width = static_cast<double>(layer.d_model() / layer.num_heads());
  options.document_bias(own.scale(1.0 / std::sqrt(width)));
}

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

void read_beit(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
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

void read_bloom(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
  constexpr const char* kOther = "apply_residual_connection_post_layernorm";
  if (config.flag(kOther)) config.refuse(kOther, "must be false, the only value that posenc has");
  TransformerLayerOptions& layer = own_layer(options);
  layer.d_ff(4 * layer.d_model()).activation(Activation::GELUTanh);
  options.encoder().alibi(
      relative::Alibi{.slopes = relative::Slopes::Bloom, .counts_tokens = true});
}

// MptModel takes 8 for the largest bias, whatever `alibi_bias_max` is, and has ALiBi always.
void read_mpt(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
  constexpr const char* kClip = "clip_qkv";
  const Settings own = config.inside_if_given("attn_config");
  if (own.real_if(kClip).value_or(0.0) != 0.0) {
    own.refuse(kClip, "must be null: queries, keys and values that are clipped are not supported");
  }
  constexpr const char* kRate[] = {"attn_pdrop"};
  const double rate = own.has(kRate[0]) ? own.real(kRate[0]) : 0.0;
  if (!(rate >= 0.0 && rate < 1.0)) own.refuse(kRate[0], "must be in [0, 1)");
  TransformerLayerOptions& layer = own_layer(options);
  layer.bias(false).norm_bias(false).d_ff(4 * layer.d_model());
  layer.dropouts(LayerDropouts{rate, rate, 0.0, rate, 0.0});
  const double scale = own.real_if("softmax_scale").value_or(0.0);
  if (own.has("softmax_scale")) layer.attention_scale(scale);
  options.encoder().alibi(relative::Alibi{.slopes = relative::Slopes::Mpt});
}

// JinaBertModel of Jina's own code. Its slopes are float64 before they are rounded.
void read_jina_bert(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
  constexpr const char* kType = "feed_forward_type";
  const std::string type = config.text(kType, "original");
  if (type != "geglu" && type != "reglu") {
    config.refuse(kType, "must be geglu or reglu with position_embedding_type alibi");
  }
  own_layer(options)
      .activation(type == "geglu" ? Activation::GELU : Activation::ReLU)
      .linear1_bias(false);
  options.encoder().alibi(relative::Alibi{.slopes = relative::Slopes::XTransformers});
}

// One table for all layers.
void read_t5(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
  set_t5_layer(config, own_layer(options));
  options.encoder().relative(t5_buckets(config, /*bidirectional=*/true));
}

// A table in each layer.
void read_umt5(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
  set_t5_layer(config, own_layer(options));
  own_layer(options).relative(t5_buckets(config, /*bidirectional=*/true));
}

void read_eurobert(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
  set_kv_heads(config, own_layer(options));
  set_biases(own_layer(options), config.flag("attention_bias"), config.flag("mlp_bias"));
}

void read_llama(const Settings& config, const hf::ModelType& model, EncoderOptions& options) {
  read_eurobert(config, model, options);
  set_causal(config, options);
}

void read_mistral(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
  set_kv_heads(config, own_layer(options));
  set_biases(own_layer(options), false, false);
  set_causal(config, options);
  if (config.has("sliding_window")) own_layer(options).window(window_of(config, options.causal()));
}

void read_qwen2(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
  set_kv_heads(config, own_layer(options));
  own_layer(options).bias(false).qkv_bias(true);
  set_causal(config, options);
  set_qwen_windows(config, options);
}

void read_qwen3(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
  set_kv_heads(config, own_layer(options));
  set_biases(own_layer(options), config.flag("attention_bias"), false);
  own_layer(options).qk_norm(true);
  set_causal(config, options);
  set_qwen_windows(config, options);
}

void read_gemma3(const Settings& config, const hf::ModelType& model, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  set_kv_heads(config, layer);
  set_biases(layer, config.flag("attention_bias"), false);
  const double scalar = config.real("query_pre_attn_scalar");
  if (!(scalar > 0)) config.refuse("query_pre_attn_scalar", "must be positive");
  layer.qk_norm(true).post_norms(true).attention_scale(1.0 / std::sqrt(scalar));
  const bool halves = config.flag_if("use_bidirectional_attention").value_or(false);
  const bool is_causal = config.flag("is_causal", true);
  options.causal(is_causal && !halves);
  const int64_t every = pattern_of(config, "sliding_window_pattern", 6);
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

void read_modernbert(const Settings& config, const hf::ModelType& model, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  set_biases(layer, config.flag("attention_bias"), config.flag("mlp_bias"));
  layer.norm_bias(config.flag("norm_bias"));
  const int64_t every = pattern_of(config, "global_attn_every_n_layers", 3);
  const auto sliding = sliding_layers(config, options.encoder().num_layers(),
                                      [&](int64_t i) { return i % every != 0; });
  const TransformerLayerOptions plain = layer;
  set_rotary(config, model, kFull, layer);
  set_layers(options, sliding, [&](TransformerLayerOptions& other) {
    other = plain;
    set_rotary(config, model, kSliding, other);
    other.window(config.integer("local_attention", 0, kWidestWindow) / 2);
  });
  auto& layers = options.encoder().layers();
  if (layers.empty()) layers.assign(sliding.size(), layer);
  layers.front().first_norm(false);
}

void read_dinov3(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
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

void read_esm_layers(const Settings& config, const hf::ModelType& model, EncoderOptions& options) {
  const bool rotates = options.embeddings()->position_ids() == embeddings::PositionIds::None;
  if (rotates) set_rotary(config, model, "", own_layer(options));
  options.zero_padding(true).raw_inputs_embeds(true);
  if (!config.flag_if("token_dropout").value_or(false)) return;
  options.token_dropout_id(
      config.integer("mask_token_id", 0, options.embeddings()->vocab_size() - 1));
}

// For sequences that are shorter than tpu_short_seq_length, FNetBasicFourierTransform then computes
// something else where SciPy is installed, and needs its matrices in the file.
void read_fnet(const Settings& config, const hf::ModelType&, EncoderOptions&) {
  constexpr int64_t kMostWithMatrices = 4096;
  if (!config.flag("use_tpu_fourier_optimizations")) return;
  if (config.integer("max_position_embeddings", 1, INT64_MAX) > kMostWithMatrices) return;
  config.refuse("use_tpu_fourier_optimizations",
                "must be false with a max_position_embeddings of at most 4096");
}

// MobileBertOutput has a norm with the epsilon of torch.nn.
void read_mobilebert_layers(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
  constexpr double kTorchEpsilon = 1e-5;
  TransformerLayerOptions& layer = own_layer(options);
  const bool uses = config.flag("use_bottleneck");
  const int64_t width =
      uses ? config.integer("intra_bottleneck_size", 1, kWidestHead) : layer.d_model();
  if (width % layer.num_heads() != 0) {
    config.refuse("num_attention_heads", std::string("must divide ") +
                                             (uses ? "intra_bottleneck_size " : "hidden_size ") +
                                             std::to_string(width));
  }
  const bool all_inside = config.flag("use_bottleneck_attention");
  const bool shares = config.flag("key_query_shared_bottleneck");
  if (uses && !all_inside && !shares && width != layer.d_model()) {
    config.refuse("key_query_shared_bottleneck",
                  "must be true without use_bottleneck_attention and with an "
                  "intra_bottleneck_size other than hidden_size");
  }
  layer.bottleneck(
      BottleneckOptions(width)
          .use_bottleneck(uses)
          .use_bottleneck_attention(all_inside)
          .key_query_shared_bottleneck(shares)
          .num_feedforward_networks(config.integer("num_feedforward_networks", 1, 1000))
          .last_norm_eps(kTorchEpsilon));
  layer.norm_kind(no_norm_in(config) ? NormKind::Affine : NormKind::Layer);
  if (uses) {
    LayerDropouts drops = *layer.dropouts();
    drops.attention_output = 0.0;
    layer.dropouts(drops);
  }
  if (!config.flag("classifier_activation")) options.pooling(encoder::Pooling::First);
}

// The words of a text with bars between them, as text.lower().split("|") and strip() find them.
std::vector<std::string> words_between_bars(std::string text) {
  constexpr const char* kBlanks = " \t\n\v\f\r";
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::vector<std::string> words;
  std::istringstream all(text + '|');  // without it, an empty last word would be none
  for (std::string word; std::getline(all, word, '|');) {
    word.erase(word.find_last_not_of(kBlanks) + 1);
    words.push_back(word.substr(std::min(word.find_first_not_of(kBlanks), word.size())));
  }
  return words;
}

// pos_att_type is a list, or a text with bars between its words.
std::vector<std::string> terms_in(const Settings& config) {
  constexpr const char* kTerms = "pos_att_type";
  std::vector<std::string> terms;
  const nlohmann::json& given = config.value(kTerms);
  if (given.is_null()) return terms;
  if (given.is_string()) return words_between_bars(given.get<std::string>());
  if (!given.is_array()) config.refuse(kTerms, "must be a list of c2p and p2c");
  for (const nlohmann::json& one : given) {
    if (!one.is_string()) config.refuse(kTerms, "must be a list of c2p and p2c");
    terms.push_back(one.get<std::string>());
  }
  return terms;
}

bool has_term(const std::vector<std::string>& terms, const char* term) {
  return std::find(terms.begin(), terms.end(), term) != terms.end();
}

// The distances and terms that both releases of DeBERTa have.
DisentangledOptions disentangled_in(const Settings& config) {
  constexpr int64_t kFarthest = int64_t{1} << 24;
  int64_t most = config.integer("max_relative_positions", -1, -kFarthest, kFarthest);
  if (most < 1) most = config.integer("max_position_embeddings", 1, kFarthest);
  const std::vector<std::string> terms = terms_in(config);
  return DisentangledOptions(most)
      .relative_attention(config.flag("relative_attention"))
      .content_to_position(has_term(terms, "c2p"))
      .position_to_content(has_term(terms, "p2c"));
}

void refuse_other_widths(const Settings& config, const TransformerLayerOptions& layer) {
  for (const auto& [name, width] :
       {std::pair<const char*, int64_t>{"pooler_hidden_size", layer.d_model()},
        {"attention_head_size", layer.d_model() / layer.num_heads()}}) {
    if (config.integer(name, width, 1, INT32_MAX) != width)
      config.refuse(name, "must be " + std::to_string(width) + ", as hidden_size has it");
  }
}

// The scale counts all words of pos_att_type, whatever they are.
void read_deberta(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  refuse_other_widths(config, layer);
  if (config.flag("talking_head", false)) config.refuse("talking_head", "must be false");
  const auto products = static_cast<double>(1 + terms_in(config).size());
  const auto width = static_cast<double>(layer.d_model() / layer.num_heads());
  layer.key_bias(false)
      .attention_scale(1.0 / std::sqrt(products * width))
      .disentangled(disentangled_in(config).position_key_bias(false));
  options.zero_padding(true);
}

// What follows the convolution has a name of transformers.
Activation conv_act_in(const Settings& config) {
  try {
    return activation_of(config.text("conv_act", "tanh"));
  } catch (const c10::ValueError&) {
    config.refuse("conv_act", "must be the name of an activation of transformers that posenc has");
  }
}

void read_deberta_v2(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  refuse_other_widths(config, layer);
  DisentangledOptions own = disentangled_in(config);
  const int64_t buckets = std::max<int64_t>(0, config.integer("position_buckets", -1, -1, 1 << 20));
  if (buckets > 0 && own.relative_attention() &&
      (buckets == 1 || own.max_relative_positions() <= buckets / 2 + 1)) {
    config.refuse("position_buckets",
                  "must be at least 2, and half of it and 1 below max_relative_positions " +
                      std::to_string(own.max_relative_positions()));
  }
  const int64_t size = config.integer("conv_kernel_size", 0, 0, 1 << 20);
  if (size > 0 && size % 2 == 0) config.refuse("conv_kernel_size", "must be odd, or 0");
  const int64_t groups = config.integer("conv_groups", 1, 1, INT32_MAX);
  if (layer.d_model() % groups != 0) config.refuse("conv_groups", "must divide hidden_size");
  own.norm_relative_embeddings(
      has_term(words_between_bars(config.text("norm_rel_ebd", "none")), "layer_norm"));
  layer.disentangled(own.position_buckets(buckets)
                         .share_att_key(config.flag("share_att_key", false))
                         .conv_kernel_size(size)
                         .conv_groups(groups)
                         .conv_act(size > 0 ? conv_act_in(config) : Activation::Tanh));
  options.zero_padding(true);
}

// Half of each head's channels are the attention's, as many the convolution's.
void read_convbert(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  const int64_t ratio = config.integer("head_ratio", 1, INT32_MAX);
  const int64_t heads = std::max<int64_t>(1, layer.num_heads() / ratio);
  if (layer.d_model() % (2 * heads) != 0) {
    config.refuse("head_ratio",
                  "must leave a number of heads, num_attention_heads / head_ratio, "
                  "twice which divides hidden_size " +
                      std::to_string(layer.d_model()));
  }
  const int64_t kernel_size = config.integer("conv_kernel_size", 1, INT32_MAX);
  if (kernel_size % 2 == 0) config.refuse("conv_kernel_size", "must be odd");
  const int64_t groups = config.integer("num_groups", 1, INT32_MAX);
  if (layer.d_model() % groups != 0 || layer.d_ff() % groups != 0) {
    config.refuse("num_groups", "must divide hidden_size and intermediate_size");
  }
  layer.num_heads(heads).conv_kernel_size(kernel_size);
}

// SqueezeBertLayerNorm has an epsilon of its own.
void read_squeezebert(const Settings&, const hf::ModelType&, EncoderOptions& options) {
  own_layer(options).layer_norm_eps(1e-12);
}

void read_xlm(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  layer.d_ff(4 * layer.d_model())
      .activation(config.flag("gelu_activation") ? Activation::GELU : Activation::ReLU);
  options.zero_padding(true).zero_hidden_padding(true).pad_token_id(
      config.integer_if("pad_token_id"));
}

// Without a memory, same_length leaves a token of a causal model no other.
void read_xlnet(const Settings& config, const hf::ModelType&, EncoderOptions& options) {
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

// The norms of its layers have torch's epsilon, that after them the setting's.
void read_wav2vec2_conformer(const Settings& config, const hf::ModelType& model,
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

}  // namespace posenc
