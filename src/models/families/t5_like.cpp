// T5, mT5 and UMT5: RMS norms, no biases, a relative position bias in place of positions. Their
// encoders can be loaded alone.
//
// posenc-budget: encoder-decoders and their encoders

#include <cmath>
#include <variant>

#include "models/config/activation_name.h"
#include "models/families/family.h"

namespace posenc::families {
namespace {

constexpr int64_t kWidestT5 = 1 << 20;
constexpr int64_t kMostT5Tokens = 1 << 24;
constexpr int64_t kMostT5Layers = 1000;
constexpr int64_t kMostT5Positions = 1 << 30;

constexpr int64_t kWidestT5Head = int64_t{1} << 20;
constexpr int64_t kMostBuckets = int64_t{1} << 20;

// `relu` or `gated-gelu`, which means gelu_new. transformers sets what it derives from it first,
// so that settings of these names in the file win.
struct T5Network {
  std::string activation;
  bool is_gated;
};

T5Network network_in(const Settings& config) {
  constexpr const char* kName = "feed_forward_proj";
  constexpr std::string_view kGated = "gated-";
  std::string activation = config.text(kName);
  const bool is_gated = activation.starts_with(kGated);
  if (is_gated) activation.erase(0, kGated.size());
  if (activation.find('-') != std::string::npos) {
    config.refuse(kName, "must be the name of an activation, or of one after \"gated-\"");
  }
  if (is_gated && activation == "gelu") activation = "gelu_new";
  for (const char* name : {"dense_act_fn", "is_gated_act"})
    if (config.mentions(name) && !config.has(name))
      config.refuse(name, "must be left out or have a value");
  return {config.text("dense_act_fn", activation), config.flag("is_gated_act", is_gated)};
}

// What all layers have, of encoders and decoders, and the feed-forward network of
// feed_forward_proj, or of dense_act_fn and is_gated_act where config.json has them.
void set_t5_layer(const Settings& config, TransformerLayerOptions& layer) {
  const T5Network network = network_in(config);
  layer.activation(named_activation(
      config, config.has("dense_act_fn") ? "dense_act_fn" : "feed_forward_proj", network.activation,
      "must have the name of an activation of transformers that posenc has"));
  constexpr const char* kRate[] = {"dropout_rate"};
  constexpr const char* kEpsilon[] = {"layer_norm_epsilon"};
  const double rate = config.probability(kRate, 0.0);
  layer.feed_forward(network.is_gated ? FeedForward::Gated : FeedForward::Plain)
      .dropout(rate)
      .dropouts(LayerDropouts{rate, rate, rate, rate, 0.0})
      .norm_first(true)
      .norm_kind(NormKind::RMS)
      .layer_norm_eps(config.not_negative(kEpsilon, 1e-6))
      .bias(false)
      .attention_scale(1.0)
      .head_dim(config.integer("d_kv", 1, kWidestT5Head));
}

// The settings that give the feed-forward network this activation and structure; none if `config`
// has it.
nlohmann::json changed_t5_network(const Settings& config, Activation activation,
                                  FeedForward structure) {
  const T5Network network = network_in(config);
  const bool is_gated = structure == FeedForward::Gated;
  if (activation_of(network.activation) == activation && network.is_gated == is_gated)
    return nlohmann::json::object();
  const std::string name = hf_name(config, activation);
  return {{"feed_forward_proj", (is_gated ? "gated-" : "") + name},
          {"dense_act_fn", name},
          {"is_gated_act", is_gated}};
}

// The buckets of the relative position bias; those of a decoder are not bidirectional.
relative::Buckets t5_buckets(const Settings& config, bool bidirectional) {
  constexpr const char* kBuckets = "relative_attention_num_buckets";
  constexpr const char* kDistance = "relative_attention_max_distance";
  const int64_t buckets = config.integer(kBuckets, 1, kMostBuckets);
  if (buckets < 4 || buckets % 2 != 0) {
    config.refuse(kBuckets,
                  "must be even, and at least 4: an encoder has half of the buckets for "
                  "the keys after a query");
  }
  const int64_t exact = bidirectional ? buckets / 4 : buckets / 2;
  const int64_t distance = config.integer(kDistance, 1, int64_t{1} << 31);
  if (distance <= exact) {
    config.refuse(kDistance, "must be above the number of distances with a bucket of their own, " +
                                 std::to_string(exact));
  }
  return {.num_buckets = buckets, .max_distance = distance, .bidirectional = bidirectional};
}

// transformers sets scale_decoder_outputs from tie_word_embeddings, which it then forces to be
// true; what a file has of it wins.
bool scales_output(const Settings& config, const Seq2SeqStructure& structure) {
  using Factor = Seq2SeqStructure::OutputFactor;
  if (structure.output_factor != Factor::FromConfig)
    return structure.output_factor == Factor::Always;
  const nlohmann::json& object = config.object();
  const auto tied = object.find("tie_word_embeddings");
  const bool is_tied = tied == object.end() || *tied != false;
  if (!config.mentions("scale_decoder_outputs")) return is_tied;
  return config.flag("scale_decoder_outputs");
}

TransformerOptions t5_options(const Settings& config, const Seq2SeqStructure& structure) {
  const int64_t vocab = config.integer("vocab_size", 1, kMostT5Tokens);
  const int64_t d_model = config.integer("d_model", 1, kWidestT5);
  const int64_t heads = config.integer("num_heads", 1, kWidestT5);
  const int64_t layers = config.integer("num_layers", 1, kMostT5Layers);
  TransformerLayerOptions layer(d_model, heads);
  set_t5_layer(config, layer);
  TransformerOptions options(vocab, vocab);
  options.d_model(d_model)
      .num_heads(heads)
      .num_encoder_layers(layers)
      .num_decoder_layers(config.integer("num_decoder_layers", layers, 1, kMostT5Layers))
      .d_ff(config.integer("d_ff", 1, kWidestT5))
      .decoder_d_ff(options.d_ff())
      .dropout(layer.dropout())
      .dropouts(layer.dropouts())
      .activation(layer.activation())
      .feed_forward(layer.feed_forward())
      .norm_first(true)
      .norm_kind(layer.norm_kind())
      .layer_norm_eps(layer.layer_norm_eps())
      .bias(false)
      .output_bias(false)
      .head_dim(layer.head_dim())
      .attention_scale(layer.attention_scale())
      .scale(Scale::None)
      .position_ids(embeddings::PositionIds::None)
      .relative(t5_buckets(config, /*bidirectional=*/true))
      .decoder_relative(t5_buckets(config, /*bidirectional=*/false))
      .relative_in_each_layer(structure.relative_in_each_layer);
  // Positions are relative; transformers bounds the default length of a search by it all the same.
  if (config.has("max_position_embeddings"))
    options.max_len(config.integer("max_position_embeddings", 1, kMostT5Positions));
  if (scales_output(config, structure))
    options.output_scale(1.0 / std::sqrt(static_cast<double>(d_model)));
  return options;
}

nlohmann::json t5_settings(const TransformerOptions& options, const Settings& config,
                           const Seq2SeqStructure& structure) {
  nlohmann::json settings = {
      {"vocab_size", options.src_vocab()},
      {"d_model", options.d_model()},
      {"num_heads", options.num_heads()},
      {"num_layers", options.num_encoder_layers()},
      {"d_ff", options.d_ff()},
      {"dropout_rate", options.dropout()},
      {"layer_norm_epsilon", options.layer_norm_eps()},
      {"d_kv", options.head_dim().value_or(options.d_model() / options.num_heads())},
  };
  if (config.integer("num_decoder_layers", options.num_encoder_layers(), 1, kMostT5Layers) !=
      options.num_decoder_layers())
    settings["num_decoder_layers"] = options.num_decoder_layers();
  if (options.relative()) {
    if (const auto* own = std::get_if<relative::Buckets>(&*options.relative())) {
      settings["relative_attention_num_buckets"] = own->num_buckets;
      settings["relative_attention_max_distance"] = own->max_distance;
    }
  }
  if (config.has("max_position_embeddings"))
    settings["max_position_embeddings"] = options.max_len();
  const bool scales = options.output_scale() != 1.0;
  if (structure.output_factor == Seq2SeqStructure::OutputFactor::FromConfig &&
      scales_output(config, structure) != scales)
    settings["scale_decoder_outputs"] = scales;
  settings.update(changed_t5_network(config, options.activation(), options.feed_forward()));
  return settings;
}

VocabularyNames t5_vocabulary(const Settings&, const Seq2SeqStructure&) {
  const std::string shared = "shared.weight", encoder = "encoder.embed_tokens.weight";
  const std::string decoder = "decoder.embed_tokens.weight", head = "lm_head.weight";
  return {shared, encoder, decoder, head, {shared, encoder, decoder, head}, true};
}

KeyMap t5_renames(const Seq2SeqStructure&) { return {}; }

// What the layers of both stacks have; `network` is the number of the last part of a layer.
void add_stack(KeyMap& keys, const std::string& stack, const std::string& network, bool is_gated) {
  const std::string from = stack + ".block.*.layer.", to = stack + ".layers.*.";
  const auto attention = [&](const std::string& theirs, const std::string& ours) {
    keys.push_back({{from + theirs + ".q.*", from + theirs + ".k.*", from + theirs + ".v.*"},
                    to + ours + ".in_proj_*"});
    keys.emplace_back(from + theirs + ".o.*", to + ours + ".out_proj.*");
  };
  attention("0.SelfAttention", "self_attn");
  if (stack == "decoder") attention("1.EncDecAttention", "multihead_attn");
  const std::string dense = from + network + ".DenseReluDense.";
  if (is_gated) {
    keys.push_back({{dense + "wi_0.*", dense + "wi_1.*"}, to + "linear1.*"});
  } else {
    keys.emplace_back(dense + "wi.*", to + "linear1.*");
  }
  keys.emplace_back(dense + "wo.*", to + "linear2.*");
  const int64_t norms = stack == "decoder" ? 3 : 2;
  for (int64_t i = 0; i < norms; ++i) {
    keys.emplace_back(from + std::to_string(i) + ".layer_norm.*",
                      to + "norm" + std::to_string(i + 1) + ".*");
  }
  keys.emplace_back(stack + ".final_layer_norm.*", stack + ".norm.*");
}

// {theirs, ours}.
KeyMap t5_keys(const TransformerOptions& options) {
  KeyMap keys;
  const std::string bias = "SelfAttention.relative_attention_bias.weight";
  for (const std::string stack : {"encoder", "decoder"}) {
    if (options.relative_in_each_layer()) {
      keys.emplace_back(stack + ".block.*.layer.0." + bias,
                        stack + ".layers.*.self_attn.relative_attention_bias.weight");
    } else {
      keys.emplace_back(stack + ".block.0.layer.0." + bias,
                        stack + ".relative_attention_bias.weight");
    }
  }
  const bool is_gated = options.feed_forward() == FeedForward::Gated;
  add_stack(keys, "encoder", "1", is_gated);
  add_stack(keys, "decoder", "2", is_gated);
  return keys;
}

constexpr Seq2SeqFamily kT5Like = {
    t5_options, t5_settings,        t5_vocabulary,      t5_renames,
    t5_keys,    "encoder.block.*.", "decoder.block.*.", "layer.0.SelfAttention.q.weight",
    ""};

// The rate is that of all dropouts.
void read_t5_dropout(const Settings& config, EncoderEmbeddingsOptions& options) {
  constexpr const char* kRate[] = {"dropout_rate"};
  options.dropout(config.probability(kRate, 0.0));
}

// One table for all layers.
void read_t5(const Settings& config, const ModelType&, EncoderOptions& options) {
  set_t5_layer(config, own_layer(options));
  options.encoder().relative(t5_buckets(config, /*bidirectional=*/true));
}

// A table in each layer.
void read_umt5(const Settings& config, const ModelType&, EncoderOptions& options) {
  set_t5_layer(config, own_layer(options));
  own_layer(options).relative(t5_buckets(config, /*bidirectional=*/true));
}

// The rows that are activated with gates are a tensor of their own, before those of the gate.
void name_t5_layer(const LayerNames& names) {
  const std::string dense = "layer.1.DenseReluDense.";
  if (names.config.options.encoder().layer().feed_forward() == FeedForward::Gated)
    names.add({dense + "wi_0", dense + "wi_1"}, "linear1.*");
  else
    names.add({dense + "wi"}, "linear1.*");
}

// clang-format off
using Factor = Seq2SeqStructure::OutputFactor;
constexpr Seq2SeqStructure kT5Seq2Seq = {.family = &kT5Like, .output_factor = Factor::FromConfig};
constexpr Seq2SeqStructure kMt5Seq2Seq = {.family = &kT5Like};
constexpr Seq2SeqStructure kUmt5Seq2Seq = {.family = &kT5Like, .relative_in_each_layer = true,
    .output_factor = Factor::Always};

constexpr EncoderLayerKeys kT5Keys[] = {{
    .layer = "encoder.block.*.",
    .query = "layer.0.SelfAttention.q", .key = "layer.0.SelfAttention.k",
    .value = "layer.0.SelfAttention.v", .out = "layer.0.SelfAttention.o",
    .narrow = "layer.1.DenseReluDense.wo",
    .norm1 = "layer.0.layer_norm", .norm2 = "layer.1.layer_norm"}};

constexpr EncoderStructure t5(const char* relative_bias, ReadLayers* more) {
  return {.keys = kT5Keys, .embeddings = "encoder.", .shared = "shared.weight", .norm_first = true,
          .norm_kind = NormKind::RMS, .last_norm = "encoder.final_layer_norm",
          .relative_bias = relative_bias, .has_head_dim = true, .dropped = "decoder.*",
          .beside = "decoder", .more = more, .layer_names = name_t5_layer};
}
constexpr EncoderStructure kT5Layers =
    t5("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", read_t5);
constexpr EncoderStructure kUmt5Layers =
    t5("encoder.block.*.layer.0.SelfAttention.relative_attention_bias.weight", read_umt5);

constexpr EmbeddingsStructure kT5Tables = {.norm = Norm::None, .position_ids = PositionIds::None,
    .has_padding = false, .has_types = false, .tokens = "embed_tokens", .more = read_t5_dropout};

constexpr HeadStructures kT5Heads = {.sequence = heads::kOfLastEnd, .token = heads::kToken,
    .question = {.out = "qa_outputs", .is_on_decoder = true, .has_prefix = false}};

constexpr ModelType kT5LikeTypes[] = {
    {.type = "mt5", .embeddings = "llama", .tables = &kT5Tables, .layers = &kT5Layers,
     .heads = &kT5Heads, .seq2seq = &kMt5Seq2Seq, .prefix = "transformer."},
    {.type = "t5", .embeddings = "llama", .tables = &kT5Tables, .layers = &kT5Layers,
     .heads = &kT5Heads, .seq2seq = &kT5Seq2Seq, .prefix = "transformer."},
    {.type = "umt5", .embeddings = "llama", .tables = &kT5Tables, .layers = &kUmt5Layers,
     .heads = &kT5Heads, .seq2seq = &kUmt5Seq2Seq, .prefix = "transformer."},
};
// clang-format on

}  // namespace

constinit const Family t5_like = kT5LikeTypes;

}  // namespace posenc::families
