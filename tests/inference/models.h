#pragma once

#include <algorithm>
#include <memory>
#include <random>

#include "posenc/inference/freeze.h"
#include "support/compare.h"
#include "support/seed.h"

namespace posenc::testing {

constexpr int64_t kPad = 0, kBegin = 1, kEnd = 2;  // any_ids() uses none of these as words
inline constexpr GemmBackend kGemmBackends[] = {GemmBackend::Native, GemmBackend::ATen,
                                                GemmBackend::Autotune};

/// Draws integers in [low, high].
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

/// A Transformer of any shape, with any values of the options that affect the result, in eval mode.
inline Transformer any_model(Dice& dice, unsigned seed) {
  static const Tying kTyings[] = {Tying::None, Tying::EncoderDecoder, Tying::DecoderOutput,
                                  Tying::ThreeWay};
  static const Activation kActivations[] = {
      Activation::ReLU,      Activation::GELU, Activation::SiLU, Activation::GELUTanh,
      Activation::QuickGELU, Activation::Tanh, Activation::Mish};
  const Tying tying = kTyings[dice(0, 3)];
  const bool one = tying == Tying::EncoderDecoder || tying == Tying::ThreeWay;
  const int64_t heads = dice(1, 4), vocab = dice(20, 60);
  TransformerOptions options(vocab, one ? vocab : dice(20, 60));
  options.num_heads(heads)
      .d_model(heads * 2 * dice(1, 20))  // the sinusoid needs an even number
      .num_encoder_layers(dice(1, 3))
      .num_decoder_layers(dice(1, 3))
      .d_ff(dice(1, 90))
      .max_len(64)
      .tie(tying)
      .activation(kActivations[dice(0, 6)])
      .norm_first(dice.coin())
      .layer_norm_eps(dice.coin() ? 1e-5 : 1e-3)
      .bias(dice.coin());
  if (dice.coin()) options.final_norm(dice.coin());
  if (dice.coin()) options.decoder_num_heads(dice.coin() ? 1 : 2 * heads);
  if (dice.coin()) options.decoder_d_ff(dice(1, 90));
  if (dice(0, 3) == 0) options.scale(Scale::None);
  torch::manual_seed(testing::seed(seed));
  Transformer model(options);
  for (auto& parameter : model->parameters()) {  // norms and biases start as ones and zeros
    torch::NoGradGuard no_grad;
    if (parameter.dim() == 1) parameter.add_(torch::randn_like(parameter), 0.1);
  }
  model->eval();
  return model;
}

/// Ids (batch, length) of words from 3 on. With padding, the rows have random lengths; the first is
/// not padded.
inline torch::Tensor any_ids(Dice& dice, int64_t batch, int64_t length, bool padded) {
  const auto ids = torch::randint(3, 20, {batch, length}, torch::kLong);
  for (int64_t b = 1; padded && b < batch; ++b) {
    const int64_t kept = dice(1, length);
    ids[b].narrow(0, kept, length - kept).fill_(kPad);
  }
  return ids;
}

/// The number of heads in a mask for both stacks: 1, to broadcast, if they have different numbers
/// of heads.
inline int64_t common_heads(const TransformerOptions& options) {
  const int64_t heads = options.num_heads();
  return options.decoder_num_heads().value_or(heads) == heads ? heads : 1;
}

/// Whether `got` equals compute(model) within Op::Layers, for a model that is as exact as this one:
/// a norm of a few nearly equal numbers magnifies earlier rounding, so a model may itself differ
/// much from its clone in float64. compute: (model, dtype) -> Tensor.
template <typename Compute>
::testing::AssertionResult computes(const torch::Tensor& got, const Transformer& model,
                                    const Compute& compute) {
  const torch::NoGradGuard no_grad;
  Transformer wide(std::dynamic_pointer_cast<TransformerImpl>(model->clone()));
  wide->to(torch::kDouble);
  wide->eval();
  const auto own = compute(*Transformer(model), torch::kFloat);
  return within(Op::Layers, got, own, compute(*wide, torch::kDouble));
}

}  // namespace posenc::testing
