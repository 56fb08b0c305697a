// Marian, BART and those derived from them: layers with biases everywhere, positions that are
// added. The encoders of some can be loaded alone.

#include "models/config/activation_name.h"
#include "models/families/family.h"
#include "posenc/positions/sinusoid/preset.h"

namespace posenc::families {
namespace {

constexpr int64_t kBartMostLayers = 1000;

Activation bart_activation(const Settings& config) {
  constexpr const char* kSetting = "activation_function";
  return named_activation(config, kSetting, config.text(kSetting));
}

// Marian alone may have two vocabularies or one.
bool shares_vocabulary(const Settings& config, const Seq2SeqStructure& structure) {
  if (structure.has_two_vocabularies) return false;
  return !config.is_known("share_encoder_decoder_embeddings") ||
         config.flag("share_encoder_decoder_embeddings");
}

int64_t bart_target_vocab(const Settings& config, const Seq2SeqStructure& structure,
                          int64_t source) {
  if (structure.has_two_vocabularies) {
    const int64_t own = config.integer("tgt_vocab_size", 1, kBartMostTokens);
    if (own != source && config.flag("tie_word_embeddings"))
      config.refuse("tgt_vocab_size", "must be src_vocab_size " + std::to_string(source) +
                                          " with tie_word_embeddings");
    return own;
  }
  if (!config.is_known("decoder_vocab_size")) return source;
  const int64_t own = config.integer("decoder_vocab_size", source, 1, kBartMostTokens);
  if (!shares_vocabulary(config, structure)) return own;
  if (own != source && !config.flag("tie_word_embeddings")) {
    config.refuse("decoder_vocab_size", "must be vocab_size " + std::to_string(source) +
                                            " with share_encoder_decoder_embeddings");
  }
  return source;
}

void read_bart_positions(const Settings& config, const Seq2SeqStructure& structure,
                         TransformerOptions& options) {
  options.max_len(config.integer("max_position_embeddings", 1, kBartMostPositions));
  if (structure.sinusoid == nullptr) {
    options.learned_positions(true).position_offset(structure.position_offset);
    return;
  }
  if (!structure.counts_tokens) {
    options.sinusoid(preset(structure.sinusoid, options.d_model()));
    return;
  }
  if (!options.padding_idx())
    config.refuse("pad_token_id", "must be a token, which has no position");
  options.position_ids(PositionIds::FromIds)
      .sinusoid(
          preset(structure.sinusoid, options.d_model(), {{"padding_idx", *options.padding_idx()}}));
}

TransformerOptions bart_options(const Settings& config, const Seq2SeqStructure& structure) {
  const char* size = structure.has_two_vocabularies ? "src_vocab_size" : "vocab_size";
  const int64_t vocab = config.integer(size, 1, kBartMostTokens);
  const Scale scale =
      config.flag_if("scale_embedding").value_or(false) ? Scale::SqrtDim : Scale::None;
  TransformerOptions options(vocab, bart_target_vocab(config, structure, vocab));
  read_bart_layers(config, options);
  options.scale(scale)
      .padding_idx(config.token_if("pad_token_id", std::min(vocab, options.tgt_vocab())))
      .norm_first(structure.norm_first)
      .embedding_norm(structure.norm)
      .output_bias(structure.has_logits_bias);
  if (structure.decoder_norm != structure.norm)
    options.decoder_embedding_norm(structure.decoder_norm);
  if (!structure.scales_decoder) options.decoder_scale(Scale::None);
  read_bart_positions(config, structure, options);
  return options;
}

nlohmann::json bart_settings(const TransformerOptions& options, const Settings& config,
                             const Seq2SeqStructure& structure) {
  const int64_t source = options.src_vocab(), target = options.tgt_vocab();
  nlohmann::json settings = bart_layer_settings(options, config);
  settings.update({{"max_position_embeddings", options.max_len()},
                   {"scale_embedding", options.scale().is_sqrt_dim()}});
  if (structure.has_two_vocabularies) {
    settings.update({{"src_vocab_size", source}, {"tgt_vocab_size", target}});
  } else {
    settings["vocab_size"] = source;
  }
  if (config.is_known("decoder_vocab_size")) {
    if (source != target || config.has("decoder_vocab_size"))
      settings["decoder_vocab_size"] = target;
    if (source != target) settings["share_encoder_decoder_embeddings"] = false;
  }
  const bool may_be_tied = source == target || !structure.has_two_vocabularies;
  if (options.tie() != Tying::None && may_be_tied) settings["tie_word_embeddings"] = true;
  return settings;
}

VocabularyNames bart_vocabulary(const Settings& config, const Seq2SeqStructure& structure) {
  const std::string encoder = "model.encoder.embed_tokens.weight";
  const std::string decoder = "model.decoder.embed_tokens.weight";
  VocabularyNames names = {"", encoder, decoder, "lm_head.weight", {}, true};
  names.are_tied = config.flag("tie_word_embeddings");
  if (structure.has_two_vocabularies) {  // tied, all are the decoder's
    names.head = "model.decoder.output_projection.weight";
    if (names.are_tied) names.order = {decoder, encoder, names.head};
  } else if (shares_vocabulary(config, structure)) {
    names.shared = "model.shared.weight";
    names.order = structure.encoder_first ? std::vector{names.shared, names.head, encoder, decoder}
                                          : std::vector{names.shared, names.head, decoder, encoder};
  } else if (names.are_tied) {
    names.order = {decoder, names.head};
  }
  return names;
}

KeyMap bart_renames(const Seq2SeqStructure&) {
  return {
      {"encoder.*", "model.encoder.*"},  // of a headless model
      {"decoder.*", "model.decoder.*"},
      {"shared.*", "model.shared.*"},
  };
}

// {theirs, ours}.
KeyMap bart_keys(const TransformerOptions& options) {
  KeyMap keys = bart_layer_keys();
  keys.emplace_back("model.encoder.layernorm_embedding.*", "src_embedding.norm.*");
  keys.emplace_back("model.decoder.layernorm_embedding.*", "tgt_embedding.norm.*");
  keys.emplace_back(KeySource::squeezed("final_logits_bias", 0), "final_layer.bias");  // (1, V)
  if (!options.output_bias()) keys.insert(keys.begin(), {"final_logits_bias", ""});
  for (const auto& [theirs, ours] :
       {std::pair<std::string, std::string>{"encoder", "src"}, {"decoder", "tgt"}}) {
    const std::string name = "model." + theirs + ".embed_positions.weight";
    if (options.learned_positions())
      keys.emplace_back(name, ours + "_embedding.position_embedding.weight");
    else
      keys.emplace_back(KeySource::unsqueezed(name, 0), ours + "_embedding.position_encoding.pe");
  }
  return keys;
}

constexpr Seq2SeqFamily kBartLike = {bart_options,
                                     bart_settings,
                                     bart_vocabulary,
                                     bart_renames,
                                     bart_keys,
                                     "model.encoder.layers.*.",
                                     "model.decoder.layers.*.",
                                     "fc1.weight",
                                     "model."};

// clang-format off
constexpr Seq2SeqStructure kBartSeq2Seq = {.family = &kBartLike, .position_offset = 2, .norm =
    Norm::AfterSum, .decoder_norm = Norm::AfterSum, .start = 2};
constexpr Seq2SeqStructure kBlenderbotSeq2Seq = {.family = &kBartLike, .norm_first = true,
    .encoder_first = true};
constexpr Seq2SeqStructure kBlenderbotSmallSeq2Seq = {.family = &kBartLike, .norm = Norm::AfterSum,
    .decoder_norm = Norm::AfterTokens, .scales_decoder = false, .encoder_first = true};
constexpr Seq2SeqStructure kFsmtSeq2Seq = {.family = &kBartLike, .sinusoid = "fsmt", .counts_tokens
    = true, .has_logits_bias = false, .saves_positions = true, .has_two_vocabularies = true};
constexpr Seq2SeqStructure kM2M100Seq2Seq = {.family = &kBartLike, .sinusoid = "m2m100",
    .counts_tokens = true, .norm_first = true, .has_logits_bias = false};
constexpr Seq2SeqStructure kMarianSeq2Seq = {.family = &kBartLike, .sinusoid = "hf_marian",
    .class_ending = "MTModel"};
constexpr Seq2SeqStructure kMBartSeq2Seq = {.family = &kBartLike, .position_offset = 2, .norm_first
    = true, .norm = Norm::AfterSum, .decoder_norm = Norm::AfterSum, .starts_with_last = true};
constexpr Seq2SeqStructure kPegasusSeq2Seq = {.family = &kBartLike, .sinusoid = "hf_pegasus",
    .norm_first = true, .saves_positions = true};
constexpr Seq2SeqStructure kPLBartSeq2Seq = {.family = &kBartLike, .position_offset = 2, .norm =
    Norm::AfterSum, .decoder_norm = Norm::AfterSum, .encoder_first = true,
    .starts_with_last = true};

const EncoderLayerKeys kBartKeys[] = {{
    .layer = "encoder.layers.*.",
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",
    .out = "self_attn.out_proj", .wide = "fc1", .narrow = "fc2",
    .norm1 = "self_attn_layer_norm", .norm2 = "final_layer_norm"}};

constexpr EncoderStructure kBartLayers = {.keys = kBartKeys, .embeddings = "encoder.",
    .shared = "shared.weight", .dropped = "decoder.*", .beside = "decoder"};
constexpr EncoderStructure kMBartLayers = {.keys = kBartKeys, .embeddings = "encoder.",
    .shared = "shared.weight", .norm_first = true, .last_norm = "encoder.layer_norm",
    .dropped = "decoder.*", .beside = "decoder"};

constexpr HeadStructure bart_sequence() {
  HeadStructure head = heads::kOfLastEnd;
  head.labels = 3;
  return head;
}
constexpr HeadStructures kBartHeads = {.sequence = bart_sequence(), .question = heads::kDecoderQuestion};
constexpr HeadStructures kMBartHeads = {.sequence = heads::kOfLastEnd, .question = heads::kDecoderQuestion};
constexpr HeadStructures kPLBartHeads = {.sequence = heads::kOfLastEnd};

constexpr ModelType kBartLikeTypes[] = {
    {.type = "bart", .embeddings = "bart", .layers = &kBartLayers,
     .heads = &kBartHeads, .seq2seq = &kBartSeq2Seq, .prefix = "model."},
    {.type = "blenderbot", .embeddings = "bart", .tables = &tables::kBlenderbot,
     .seq2seq = &kBlenderbotSeq2Seq},
    {.type = "blenderbot-small", .embeddings = "bart", .tables = &tables::kLed,
     .seq2seq = &kBlenderbotSmallSeq2Seq},
    {.type = "fsmt", .seq2seq = &kFsmtSeq2Seq},
    {.type = "m2m_100", .seq2seq = &kM2M100Seq2Seq},
    {.type = "marian", .seq2seq = &kMarianSeq2Seq},
    {.type = "mbart", .embeddings = "bart", .layers = &kMBartLayers,
     .heads = &kMBartHeads, .seq2seq = &kMBartSeq2Seq, .prefix = "model."},
    {.type = "pegasus", .seq2seq = &kPegasusSeq2Seq},
    {.type = "plbart", .embeddings = "bart", .layers = &kBartLayers,
     .heads = &kPLBartHeads, .seq2seq = &kPLBartSeq2Seq, .prefix = "model."},
};
// clang-format on

}  // namespace

void read_bart_layers(const Settings& config, TransformerOptions& options) {
  const int64_t d_model = config.integer("d_model", 1, kBartMostWide);
  const double dropout = config.real("dropout");
  options.d_model(d_model)
      .num_heads(config.integer("encoder_attention_heads", 1, d_model))
      .decoder_num_heads(config.integer("decoder_attention_heads", 1, d_model))
      .num_encoder_layers(config.integer("encoder_layers", 1, kBartMostLayers))
      .num_decoder_layers(config.integer("decoder_layers", 1, kBartMostLayers))
      .d_ff(config.integer("encoder_ffn_dim", 1, kBartMostWide))
      .decoder_d_ff(config.integer("decoder_ffn_dim", 1, kBartMostWide))
      .dropout(dropout)
      .dropouts(LayerDropouts{.attention = config.real("attention_dropout", 0.0),
                              .attention_output = dropout,
                              .activation = config.real("activation_dropout", 0.0),
                              .output = dropout})
      .activation(bart_activation(config));
}

nlohmann::json bart_layer_settings(const TransformerOptions& options, const Settings& config) {
  const double rate = options.dropout();
  const LayerDropouts dropouts = options.dropouts().value_or(LayerDropouts{rate, rate, rate, rate});
  nlohmann::json settings = {
      {"d_model", options.d_model()},
      {"encoder_attention_heads", options.num_heads()},
      {"decoder_attention_heads", options.decoder_num_heads().value_or(options.num_heads())},
      {"encoder_layers", options.num_encoder_layers()},
      {"decoder_layers", options.num_decoder_layers()},
      {"encoder_ffn_dim", options.d_ff()},
      {"decoder_ffn_dim", options.decoder_d_ff().value_or(options.d_ff())},
      {"dropout", options.dropout()},
      {"attention_dropout", dropouts.attention},
      {"activation_dropout", dropouts.activation},
  };
  if (bart_activation(config) != options.activation())
    settings["activation_function"] = hf_name(config, options.activation());
  return settings;
}

KeyMap bart_layer_keys() {
  return {
      {"model.encoder.layer_norm.*", "encoder.norm.*"},
      {"model.decoder.layer_norm.*", "decoder.norm.*"},
      {"model.encoder.layers.*.self_attn_layer_norm.*", "encoder.layers.*.norm1.*"},
      {"model.encoder.layers.*.final_layer_norm.*", "encoder.layers.*.norm2.*"},
      {"model.decoder.layers.*.self_attn_layer_norm.*", "decoder.layers.*.norm1.*"},
      {"model.decoder.layers.*.encoder_attn_layer_norm.*", "decoder.layers.*.norm2.*"},
      {"model.decoder.layers.*.final_layer_norm.*", "decoder.layers.*.norm3.*"},
      {{"model.*.layers.*.self_attn.q_proj.*", "model.*.layers.*.self_attn.k_proj.*",
        "model.*.layers.*.self_attn.v_proj.*"},
       "*.layers.*.self_attn.in_proj_*"},
      {"model.*.layers.*.self_attn.out_proj.*", "*.layers.*.self_attn.out_proj.*"},
      {{"model.*.layers.*.encoder_attn.q_proj.*", "model.*.layers.*.encoder_attn.k_proj.*",
        "model.*.layers.*.encoder_attn.v_proj.*"},
       "*.layers.*.multihead_attn.in_proj_*"},
      {"model.*.layers.*.encoder_attn.out_proj.*", "*.layers.*.multihead_attn.out_proj.*"},
      {"model.*.layers.*.fc1.*", "*.layers.*.linear1.*"},
      {"model.*.layers.*.fc2.*", "*.layers.*.linear2.*"},
  };
}

constinit const Family bart_like = kBartLikeTypes;

}  // namespace posenc::families
