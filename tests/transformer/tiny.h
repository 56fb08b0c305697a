#pragma once

#include <cstdint>

#include "posenc/transformer/transformer.h"
#include "support/seed.h"

namespace posenc::testing {

/// 11 source and 9 target words, or 9 and 9 if embeddings are tied; two small layers per stack, no
/// dropout.
inline TransformerOptions tiny(Tying tying = Tying::None) {
  const bool one = tying == Tying::EncoderDecoder || tying == Tying::ThreeWay;
  return TransformerOptions(one ? 9 : 11, 9)
      .d_model(8)
      .num_heads(2)
      .num_encoder_layers(2)
      .num_decoder_layers(2)
      .d_ff(12)
      .max_len(16)
      .dropout(0.0)
      .tie(tying);
}

/// A source of 12 frames of 5 features; with the rest of Whisper's structure.
constexpr int64_t kTinyBins = 5, kTinyFrames = 12;
inline TransformerOptions tiny_hearing(Tying tying = Tying::None) {
  return tiny(tying)
      .src_vocab(0)
      .src_features(AudioEmbeddingsOptions(kTinyBins, 8, kTinyFrames))
      .learned_positions(true)
      .scale(Scale::None)
      .norm_first(true)
      .activation(Activation::GELU)
      .key_bias(false)
      .output_bias(false);
}
inline torch::Tensor tiny_sounds(int64_t batch = 2) {
  return torch::randn({batch, kTinyBins, kTinyFrames});
}

/// A tiny model in eval mode; different for each `trial`.
inline Transformer tiny_model(TransformerOptions options = tiny(), uint64_t trial = 0) {
  torch::manual_seed(seed(11) + trial);
  Transformer model(options);
  model->eval();
  return model;
}

inline const Tying kTyings[] = {Tying::None, Tying::EncoderDecoder, Tying::DecoderOutput,
                                Tying::ThreeWay};

}  // namespace posenc::testing
