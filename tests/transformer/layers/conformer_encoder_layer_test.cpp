// Layers of a conformer, of which each part is compared with its definition.

#include "posenc/transformer/layers/conformer_encoder_layer.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <algorithm>

#include "modules/drawn_module.h"
#include "posenc/inference/freeze.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "support/compare.h"
#include "transformer/with_threads.h"

namespace posenc::conformer_encoder_layer_test {
namespace {

using testing::drawn;
using testing::expect_with_threads;
using testing::near;

TransformerLayerOptions conformer(int64_t size) {
  return TransformerLayerOptions(8, 2)
      .d_ff(7)
      .dropout(0.0)
      .activation(Activation::SiLU)
      .conformer(ConformerOptions(size));
}

TEST(ConformerConvolution, SeesTheTokensAround) {
  const torch::NoGradGuard no_grad;
  auto conv = drawn(ConformerConvolution(conformer(3)));
  const auto x = torch::randn({2, 5, 8});
  const auto halves = conv->pointwise1->forward(conv->norm->forward(x)).chunk(2, -1);
  const auto gated = halves[0] * torch::sigmoid(halves[1]);
  auto sums = torch::zeros({2, 5, 8});
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t k = 0; k < 3; ++k) {
      const int64_t j = i + k - 1;
      if (j < 0 || j >= 5) continue;
      sums.select(1, i).add_(gated.select(1, j) * conv->depthwise_weight.select(1, k));
    }
  }
  const auto& norm = *conv->batch_norm;
  const auto normed =
      (sums - norm.running_mean) / (norm.running_var + 1e-5).sqrt() * norm.weight + norm.bias;
  EXPECT_TRUE(near(conv->forward(x), conv->pointwise2->forward(torch::silu(normed))));
}

// With each kind of positions and mask, and numbers of threads.
TEST(ConformerEncoderLayer, FrozenLayersComputeTheSame) {
  const torch::NoGradGuard no_grad;
  const int64_t length = 70;
  const auto x = torch::randn({3, length, 8});
  auto tokens = torch::ones({3, length}, torch::kBool);
  tokens[0].slice(0, 50).fill_(false);
  tokens[1].slice(0, 5, 30, 2).fill_(false);
  const RotaryEmbeddingOptions rotary(rotary_preset("wav2vec2_conformer", 4));
  const TransformerLayerOptions kinds[] = {
      conformer(5), conformer(1).transformer_xl(TransformerXLOptions(SinusoidOptions(8))),
      conformer(31).rotary(rotary)};
  for (const TransformerLayerOptions& kind : kinds) {
    auto encoder = drawn(TransformerEncoder(TransformerEncoderOptions(kind, 2).norm(true)));
    const auto frozen = freeze(encoder);
    for (const AttentionMask& mask :
         {AttentionMask(), AttentionMask::key_padding(tokens), AttentionMask::causal()}) {
      expect_with_threads(encoder->forward(x, mask), [&] { return frozen.forward(x, mask); });
    }
  }
}

// Of each kind of positions, the weights of a layer have an axis of heads.
TEST(ConformerEncoderLayer, RecordsTheWeightsOfEachHead) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 5, 8});
  const RotaryEmbeddingOptions rotary(rotary_preset("wav2vec2_conformer", 4));
  for (const TransformerLayerOptions& kind :
       {conformer(3), conformer(3).transformer_xl(TransformerXLOptions(SinusoidOptions(8))),
        conformer(3).rotary(rotary)}) {
    auto encoder = drawn(TransformerEncoder(TransformerEncoderOptions(kind, 2)));
    TransformerEncoderRecord record;
    record.output_attentions = true;
    encoder->forward_with(x, {}, record);
    ASSERT_EQ(record.attentions.size(), 2U);
    for (const torch::Tensor& weights : record.attentions) {
      EXPECT_EQ(weights.sizes(), (std::vector<int64_t>{2, 2, 5, 5}));
      EXPECT_TRUE(near(weights.sum(-1), torch::ones({2, 2, 5})));
    }
  }
}

// Options of the parts of a layer, changed before it is frozen and afterwards.
TEST(ConformerEncoderLayer, FrozenConvolutionsHaveOptionsOfTheirOwn) {
  const torch::NoGradGuard no_grad;
  auto encoder = drawn(TransformerEncoder(TransformerEncoderOptions(conformer(3), 1)));
  auto& conv = *encoder->layers->at<ConformerEncoderLayerImpl>(0).conv;
  conv.options.activation(Activation::GELU);
  const auto x = torch::randn({2, 5, 8});
  const auto frozen = freeze(encoder);
  EXPECT_TRUE(near(frozen.forward(x), encoder->forward(x)));
  conv.batch_norm->options.track_running_stats(false);
  EXPECT_ERROR(frozen.forward(x), c10::Error, "Got other options of layers.0.conv");
  EXPECT_ERROR(freeze(encoder), c10::ValueError,
               "[freeze] layers.0.conv.batch_norm: track_running_stats must be true. Got false");
}

TEST(ConformerEncoderLayer, RefusesOptionsThatDoNotFit) {
  EXPECT_ERROR(ConformerEncoderLayer{TransformerLayerOptions(8, 2)}, c10::ValueError,
               "[ConformerEncoderLayer] conformer must be set");
  EXPECT_ERROR(ConformerEncoderLayer{conformer(4)}, c10::ValueError,
               "[ConformerConvolution] conv_kernel_size must be odd and positive. Got 4");
  EXPECT_ERROR(ConformerEncoderLayer{conformer(3).norm_first(true)}, c10::ValueError,
               "[ConformerEncoderLayer] norm_first must be its default");
  EXPECT_ERROR(TransformerEncoderLayer{conformer(3)}, c10::ValueError,
               "[TransformerEncoderLayer] conformer must not be set");
  const RotaryEmbeddingOptions rotary(rotary_preset("wav2vec2_conformer", 4));
  EXPECT_ERROR(
      ConformerEncoderLayer{
          conformer(3).rotary(rotary).transformer_xl(TransformerXLOptions(SinusoidOptions(8)))},
      c10::ValueError, "[ConformerEncoderLayer] transformer_xl and rotary must not both be set");
  RotaryEmbeddingOptions of_heads = rotary, of_values = rotary;
  of_heads.rotary().applied_to(rotary::AppliedTo::Heads);
  EXPECT_ERROR(ConformerEncoderLayer{conformer(3).rotary(of_heads)}, c10::ValueError,
               "[ConformerEncoderLayer] rotary must have applied_to(AppliedTo::HiddenStates)");
  of_values.rotary().rotary_value(true);
  EXPECT_ERROR(ConformerEncoderLayer{conformer(3).rotary(of_values)}, c10::ValueError,
               "[ConformerEncoderLayer] rotary must have rotary_value(false)");
  const TransformerXLOptions positions(SinusoidOptions(8));
  for (const auto& own : {TransformerXLOptions(positions).bi_data(true),
                          TransformerXLOptions(positions).segments(true),
                          TransformerXLOptions(positions).mask_embedding(true)}) {
    EXPECT_ERROR(ConformerEncoderLayer{conformer(3).transformer_xl(own)}, c10::ValueError,
                 "of transformer_xl must be false: it is of a TransformerEncoderLayer. Got true");
  }
}

}  // namespace
}  // namespace posenc::conformer_encoder_layer_test
