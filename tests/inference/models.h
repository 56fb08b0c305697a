#pragma once

#include <random>

#include "posenc/inference/freeze.h"
#include "support/seed.h"

namespace posenc::testing {

/// Draws whole numbers from low .. high.
class Dice {
 public:
  explicit Dice(unsigned own) : random_(testing::seed(own)) {}
  int64_t operator()(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool coin() { return (*this)(0, 1) == 1; }

 private:
  std::mt19937 random_;
};

/// A Transformer of any shape and of all options that change what it computes, in eval mode.
inline Transformer any_model(Dice& dice, unsigned seed) {
  static const Tying kTyings[] = {Tying::None, Tying::EncoderDecoder, Tying::DecoderOutput,
                                  Tying::ThreeWay};
  static const Activation kActivations[] = {Activation::ReLU, Activation::GELU, Activation::Swish};
  const int64_t heads = dice(1, 4), vocab = dice(20, 60);
  TransformerOptions options(vocab, vocab);
  options.num_heads(heads)
      .d_model(heads * 2 * dice(1, 20))  // the sinusoid wants an even number
      .num_encoder_layers(dice(1, 3))
      .num_decoder_layers(dice(1, 3))
      .d_ff(dice(1, 90))
      .max_len(64)
      .tie(kTyings[dice(0, 3)])
      .activation(kActivations[dice(0, 2)])
      .norm_first(dice.coin())
      .layer_norm_eps(dice.coin() ? 1e-5 : 1e-3)
      .bias(dice.coin());
  if (dice.coin()) options.final_norm(dice.coin());
  torch::manual_seed(testing::seed(seed));
  Transformer model(options);
  for (auto& parameter : model->parameters()) {  // norms and biases begin as ones and zeros
    torch::NoGradGuard no_grad;
    if (parameter.dim() == 1) parameter.add_(torch::randn_like(parameter), 0.1);
  }
  model->eval();
  return model;
}

constexpr int64_t kPad = 0;

/// Ids (batch, length) of words 3 and above; with padding the rows have any length, one the full
/// one.
inline torch::Tensor any_ids(Dice& dice, int64_t batch, int64_t length, bool padded) {
  const auto ids = torch::randint(3, 20, {batch, length}, torch::kLong);
  for (int64_t b = 1; padded && b < batch; ++b) {
    const int64_t kept = dice(1, length);
    ids[b].narrow(0, kept, length - kept).fill_(kPad);
  }
  return ids;
}

}  // namespace posenc::testing
