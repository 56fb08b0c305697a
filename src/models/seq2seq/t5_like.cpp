// T5, mT5 and UMT5: RMS norms, no biases, a relative position bias in place of positions.

#include <cmath>
#include <variant>

#include "models/config/t5_layers.h"
#include "models/types/seq2seq_structures.h"

namespace posenc {
namespace {

constexpr int64_t kWidestT5 = 1 << 20;
constexpr int64_t kMostT5Tokens = 1 << 24;
constexpr int64_t kMostT5Layers = 1000;
constexpr int64_t kMostT5Positions = 1 << 30;

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

const Seq2SeqFamily kT5Like = {
    t5_options, t5_settings,        t5_vocabulary,      t5_renames,
    t5_keys,    "encoder.block.*.", "decoder.block.*.", "layer.0.SelfAttention.q.weight",
    ""};

}  // namespace

namespace seq2seq {

using Factor = Seq2SeqStructure::OutputFactor;

const Seq2SeqStructure kT5 = {.family = &kT5Like, .output_factor = Factor::FromConfig};
const Seq2SeqStructure kMt5 = {.family = &kT5Like};
const Seq2SeqStructure kUmt5 = {
    .family = &kT5Like, .relative_in_each_layer = true, .output_factor = Factor::Always};

}  // namespace seq2seq
}  // namespace posenc
