#include "models/marian/config.h"

#include "models/generate/folder.h"
#include "posenc/sinusoid/preset.h"

namespace posenc {
namespace {

constexpr int64_t kMostWide = 1 << 20;
constexpr int64_t kMostPositions = 1 << 16;  // two tables of this length are allocated
constexpr int64_t kMostTokens = 1 << 24;
constexpr int64_t kMostLayers = 1000;

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

}  // namespace

TransformerOptions read_marian_options(const Settings& config) {
  return transformer_in(config.of("marian"));
}

// The search ignores the defaults of MarianConfig.
MarianSearch read_marian_search(const std::string& folder, const Settings& config,
                                const TransformerOptions& model) {
  return {generate_options(generation_settings(folder, config), model.tgt_vocab()),
          pad_in(config.of("marian"), model.src_vocab())};
}

}  // namespace posenc
