#include "models/marian/config.h"

#include <algorithm>
#include <filesystem>

#include "core/check.h"
#include "io/base/file.h"
#include "posenc/sinusoid/preset.h"

namespace posenc {
namespace {

constexpr int64_t kMostWide = 1 << 20;
constexpr int64_t kMostPositions = 1 << 16;  // two tables of this length are allocated
constexpr int64_t kMostTokens = 1 << 24;
constexpr int64_t kMostLayers = 1000;
constexpr int64_t kMostBeams = 1024;
constexpr const char* kLoadMarian = "load_marian";
constexpr int64_t kDefaultNewTokens = 20;  // default of transformers' generate()

Activation marian_activation(const Settings& config) {
  const std::string name = config.text("activation_function");
  try {
    return activation_of(name);
  } catch (const c10::ValueError&) {
    config.refuse("activation_function", "must be relu, gelu, gelu_new, quick_gelu, swish or silu");
  }
}

// As in MarianModel: with share_encoder_decoder_embeddings, all three matrices are one; without it,
// the decoder's two are. tie_word_embeddings=false keeps all of them separate and leaves
// `model.shared` unused.
Tying tying_in(const Settings& config) {
  if (!config.flag("tie_word_embeddings")) return Tying::None;
  return config.flag("share_encoder_decoder_embeddings") ? Tying::ThreeWay : Tying::DecoderOutput;
}

int64_t target_vocab_in(const Settings& config, int64_t source_vocab) {
  const int64_t own = config.whole("decoder_vocab_size", source_vocab, 1, kMostTokens);
  if (!config.flag("share_encoder_decoder_embeddings")) return own;
  if (own != source_vocab && tying_in(config) == Tying::None) {
    config.refuse("decoder_vocab_size", "must be vocab_size " + std::to_string(source_vocab) +
                                            " with share_encoder_decoder_embeddings");
  }
  return source_vocab;
}

// The layers are MarianEncoderLayer and MarianDecoderLayer: post-norm, without a final norm.
TransformerOptions transformer_in(const Settings& config) {
  if (config.text("model_type", "") != "marian") {
    config.refuse("model_type", "must be \"marian\"");
  }
  if (!config.flag("is_encoder_decoder")) config.refuse("is_encoder_decoder", "must be true");
  const int64_t vocab = config.whole("vocab_size", 1, kMostTokens);
  const int64_t d_model = config.whole("d_model", 1, kMostWide);
  return TransformerOptions(vocab, target_vocab_in(config, vocab))
      .d_model(d_model)
      .num_heads(config.whole("encoder_attention_heads", 1, d_model))
      .decoder_num_heads(config.whole("decoder_attention_heads", 1, d_model))
      .num_encoder_layers(config.whole("encoder_layers", 1, kMostLayers))
      .num_decoder_layers(config.whole("decoder_layers", 1, kMostLayers))
      .d_ff(config.whole("encoder_ffn_dim", 1, kMostWide))
      .decoder_d_ff(config.whole("decoder_ffn_dim", 1, kMostWide))
      .max_len(config.whole("max_position_embeddings", 1, kMostPositions))
      .dropout(config.real("dropout"))
      .activation(marian_activation(config))
      .scale(config.flag("scale_embedding") ? Scale::SqrtDim : Scale::None)
      .sinusoid(preset("hf_marian", d_model))
      .tie(tying_in(config));
}

// Null stands for the default too, since a translator needs padding.
int64_t pad_in(const Settings& config, int64_t vocab) {
  const auto pad = config.tokens("pad_token_id", vocab);
  if (pad.size() > 1) config.refuse("pad_token_id", "must be one token");
  if (!pad.empty()) return pad.front();
  const int64_t usual = hf::ConfigClass::of("marian").default_of("pad_token_id");
  if (usual >= vocab) {
    config.refuse("pad_token_id", "must be a token in [0, " + std::to_string(vocab) +
                                      "), which MarianConfig's default, " + std::to_string(usual) +
                                      ", is not");
  }
  return usual;
}

EarlyStopping early_stopping_in(const Settings& settings) {
  const auto& value = settings.value("early_stopping");
  if (value == "never") return EarlyStopping::Never;
  if (!value.is_null() && !value.is_boolean()) {
    settings.refuse("early_stopping", "must be true, false or \"never\"");
  }
  return settings.flag("early_stopping", false) ? EarlyStopping::WhenFull
                                                : EarlyStopping::WhenUnlikely;
}

// max_length in transformers includes the begin token; max_new_tokens here does not.
int64_t max_length_in(const Settings& settings, int64_t positions) {
  if (settings.has("max_new_tokens")) {
    return std::min(settings.whole("max_new_tokens", 1, 1, INT64_MAX), positions);
  }
  if (!settings.has("max_length"))
    return std::min(kDefaultNewTokens, std::max<int64_t>(positions - 1, 1));
  return std::min(settings.whole("max_length", 2, 2, INT64_MAX) - 1, positions);
}

// Settings of transformers' generate() that are not supported, with the values that disable them.
const std::pair<const char*, nlohmann::json> kNothing[] = {
    {"begin_suppress_tokens", nullptr},
    {"constraints", nullptr},
    {"diversity_penalty", 0.0},
    {"do_sample", false},
    {"dola_layers", nullptr},
    {"encoder_no_repeat_ngram_size", 0},
    {"encoder_repetition_penalty", 1.0},
    {"exponential_decay_length_penalty", nullptr},
    {"force_words_ids", nullptr},
    {"forced_bos_token_id", nullptr},
    {"guidance_scale", 1.0},
    {"low_memory", false},
    {"max_time", nullptr},
    {"min_length", 0},
    {"min_new_tokens", 0},
    {"no_repeat_ngram_size", 0},
    {"num_beam_groups", 1},
    {"penalty_alpha", 0.0},
    {"repetition_penalty", 1.0},
    {"sequence_bias", nullptr},
    {"stop_strings", nullptr},
    {"token_healing", false},
    {"watermarking_config", nullptr},
};

// The token that begins a target, as in transformers: decoder_start_token_id, otherwise
// bos_token_id, of the file that the search is in.
int64_t begin_in(const Settings& settings, int64_t vocab) {
  for (const char* name : {"decoder_start_token_id", "bos_token_id"}) {
    const auto begin = settings.tokens(name, vocab);
    if (begin.size() > 1) settings.refuse(name, "must be one token");
    if (!begin.empty()) return begin.front();
  }
  settings.refuse("decoder_start_token_id", "must be one token, or bos_token_id must be");
}

GenerateOptions generation_in(const Settings& settings, const TransformerOptions& model) {
  const int64_t vocab = model.tgt_vocab();
  for (const auto& [name, nothing] : kNothing) {
    if (settings.has(name) && settings.value(name) != nothing) {
      settings.refuse(name, "must be " + nothing.dump() + ", the only value that posenc has");
    }
  }
  const auto stop = settings.tokens("eos_token_id", vocab);
  const auto end = settings.tokens("forced_eos_token_id", vocab);
  if (end.size() > 1) settings.refuse("forced_eos_token_id", "must be one token");
  auto banned = settings.single_tokens("bad_words_ids", vocab);
  banned.erase(std::remove_if(banned.begin(), banned.end(),
                              [&](int64_t id) {
                                return std::find(stop.begin(), stop.end(), id) != stop.end();
                              }),
               banned.end());
  for (const int64_t id : settings.tokens("suppress_tokens", vocab)) banned.push_back(id);
  const int64_t beams = settings.whole("num_beams", 1, 1, kMostBeams);
  return GenerateOptions(begin_in(settings, vocab), 0)
      .eos_ids(stop)
      .forced_eos_id(end.empty() ? std::nullopt : std::optional<int64_t>(end.front()))
      .suppress_tokens(banned)
      .renormalize(settings.flag("renormalize_logits", false))
      .max_new_tokens(max_length_in(settings, model.max_len()))
      .num_beams(beams)
      .num_return_sequences(settings.whole("num_return_sequences", 1, 1, beams))
      .length_penalty(settings.real("length_penalty", 1.0))
      .early_stopping(early_stopping_in(settings));
}

}  // namespace

TransformerOptions read_marian_options(const Settings& config) {
  return transformer_in(config.of("marian"));
}

// The search ignores the defaults of MarianConfig.
MarianSearch read_marian_search(const std::string& folder, const Settings& config,
                                const TransformerOptions& model) {
  const auto path = (std::filesystem::path(folder) / "generation_config.json").string();
  return {generation_in(io::may_exist(path) ? Settings(kLoadMarian, path) : config, model),
          pad_in(config.of("marian"), model.src_vocab())};
}

}  // namespace posenc
