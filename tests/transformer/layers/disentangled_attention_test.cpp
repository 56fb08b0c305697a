// Layers whose attention has terms of relative positions, as DeBERTa's.

#include "posenc/transformer/attention/disentangled_attention.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "modules/drawn_module.h"
#include "posenc/inference/freeze.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "support/compare.h"
#include "transformer/with_threads.h"

namespace posenc::disentangled_attention_test {
namespace {

using testing::bit_equal;
using testing::drawn;
using testing::expect_with_threads;
using testing::near;

TransformerLayerOptions layer_of(const DisentangledOptions& positions) {
  return TransformerLayerOptions(8, 2).d_ff(7).dropout(0.0).disentangled(positions);
}

TEST(DisentangledAttention, AddsTheProductsOfEachDistance) {
  const torch::NoGradGuard no_grad;
  const int64_t length = 6, most = 3;
  auto attention =
      drawn(DisentangledAttention(DisentangledAttentionOptions(4, 1, DisentangledOptions(most))));
  const auto x = torch::randn({1, length, 4}), table = torch::randn({2 * most, 4});
  const auto parts =
      torch::linear(x[0], attention->in_proj_weight, attention->in_proj_bias).chunk(3, 1);
  const auto keys = attention->pos_key->forward(table);
  const auto queries = attention->pos_query->forward(table);
  auto scores = torch::empty({length, length});
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t j = 0; j < length; ++j) {
      const int64_t row = std::clamp<int64_t>(i - j + most, 0, 2 * most - 1);
      const auto sum =
          parts[0][i].dot(parts[1][j]) + parts[0][i].dot(keys[row]) + parts[1][j].dot(queries[row]);
      scores[i][j] = sum / std::sqrt(3.0 * 4.0);
    }
  }
  const auto expected = attention->out_proj->forward(scores.softmax(-1).matmul(parts[2]));
  EXPECT_TRUE(near(attention->forward(x, table)[0], expected));
}

TEST(DisentangledAttention, TakesMasksInHalfPrecision) {
  const torch::NoGradGuard no_grad;
  const DisentangledAttentionOptions options(8, 2, DisentangledOptions(3));
  const auto x = torch::randn({2, 5, 8}) * 0.5, table = torch::randn({6, 8}) * 0.5;
  auto tokens = torch::ones({2, 5}, torch::kBool);
  tokens[0].slice(0, 3).fill_(false);
  const AttentionMask masks[] = {AttentionMask::key_padding(tokens), AttentionMask::causal(),
                                 AttentionMask::additive_pairs(torch::randn({5, 5}))};
  for (const auto dtype : {torch::kBFloat16, torch::kHalf}) {
    for (const AttentionMask& mask : masks) {
      auto attention = drawn(DisentangledAttention(options));
      const auto expected = attention->forward(x, table, mask);
      attention->to(dtype);
      const auto got = attention->forward(x.to(dtype), table.to(dtype), mask);
      EXPECT_EQ(got.scalar_type(), dtype);
      const double most = expected.abs().max().item<double>();
      EXPECT_LE((got.to(torch::kFloat) - expected).abs().max().item<double>(),
                0.2 * std::max(1.0, most));
    }
  }
}

TEST(RelativeEmbeddings, NormalisesTheTableThatAllLayersShare) {
  auto table =
      drawn(RelativeEmbeddings(layer_of(DisentangledOptions(5).norm_relative_embeddings(true))));
  EXPECT_EQ(table->weight.sizes(), (std::vector<int64_t>{10, 8}));
  EXPECT_TRUE(near(table->forward(), torch::layer_norm(table->weight, {8}, table->norm->weight,
                                                       table->norm->bias, 1e-5)));
  auto plain = RelativeEmbeddings(layer_of(DisentangledOptions(5)));
  EXPECT_TRUE(bit_equal(plain->forward(), plain->weight));
}

// With each term, kind of distance and mask, tokens of padding between others, and numbers of
// threads.
TEST(DisentangledAttention, FrozenLayersComputeTheSame) {
  const torch::NoGradGuard no_grad;
  const int64_t length = 70;  // more than a tile of keys
  const auto x = torch::randn({3, length, 8});
  auto tokens = torch::ones({3, length}, torch::kBool);
  tokens[0].slice(0, 50).fill_(false);
  tokens[1].slice(0, 0, 20).fill_(false);
  tokens[2].slice(0, 5, 30, 2).fill_(false);
  const DisentangledOptions all(20);
  const DisentangledOptions kinds[] = {
      all,
      DisentangledOptions(40).position_buckets(8).norm_relative_embeddings(true),
      DisentangledOptions(all).content_to_position(false),
      DisentangledOptions(all).position_to_content(false).share_att_key(true),
      DisentangledOptions(all).share_att_key(true).conv_kernel_size(3).conv_groups(2),
      DisentangledOptions(all).relative_attention(false)};
  for (const DisentangledOptions& kind : kinds) {
    auto encoder = drawn(TransformerEncoder(TransformerEncoderOptions(layer_of(kind), 2)));
    const auto frozen = freeze(encoder);
    for (const AttentionMask& mask :
         {AttentionMask(), AttentionMask::key_padding(tokens), AttentionMask::causal()}) {
      expect_with_threads(
          encoder->forward(x, mask), [&] { return frozen.forward(x, mask); },
          mask.padding_keys().defined() ? tokens : torch::Tensor());
    }
  }
}

TEST(DisentangledAttention, QueriesWithoutKeysAttendToAllAlike) {
  const torch::NoGradGuard no_grad;
  auto encoder =
      drawn(TransformerEncoder(TransformerEncoderOptions(layer_of(DisentangledOptions(3)), 1)));
  const auto x = torch::randn({1, 5, 8});
  auto pairs = torch::ones({1, 5, 5}, torch::kBool);
  pairs[0][2].fill_(false);
  const auto mask = AttentionMask::allowed(pairs);
  TransformerEncoderRecord record;
  record.output_attentions = true;
  const auto out = encoder->forward_with(x, mask, record);
  EXPECT_TRUE(near(record.attentions[0].select(2, 2), torch::full({1, 2, 5}, 0.2)));
  EXPECT_TRUE(near(freeze(encoder).forward(x, mask), out));
}

TEST(DisentangledAttention, AWindowThatALayerGotLaterIsFrozenToo) {
  const torch::NoGradGuard no_grad;
  auto encoder =
      drawn(TransformerEncoder(TransformerEncoderOptions(layer_of(DisentangledOptions(3)), 1)));
  encoder->layers->at<TransformerEncoderLayerImpl>(0).options.window(1);
  const auto x = torch::randn({2, 6, 8});
  EXPECT_TRUE(near(freeze(encoder).forward(x), encoder->forward(x)));
}

TEST(DisentangledAttention, NoticesOtherOptionsOnceItIsFrozen) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({1, 4, 8});
  const auto noticed = [&](const char* part, const auto& change) {
    const auto layer = layer_of(DisentangledOptions(3).conv_kernel_size(3));
    auto encoder = drawn(TransformerEncoder(TransformerEncoderOptions(layer, 1)));
    const auto frozen = freeze(encoder);
    EXPECT_NO_THROW(frozen.forward(x));
    change(*encoder);
    EXPECT_ERROR(frozen.forward(x), c10::Error, part);
  };
  noticed("other options of layers.0.self_attn", [](TransformerEncoderImpl& encoder) {
    auto& layer = encoder.layers->at<TransformerEncoderLayerImpl>(0);
    layer.disentangled_attn->options.positions().content_to_position(false);
  });
  noticed("other options of conv", [](TransformerEncoderImpl& encoder) {
    encoder.conv->options.disentangled()->conv_act(Activation::GELU);
  });
}

TEST(DisentangledAttention, RefusesOptionsThatDoNotFit) {
  const DisentangledOptions positions(3);
  EXPECT_ERROR(TransformerEncoderLayer{layer_of(positions).norm_first(true)}, c10::ValueError,
               "[TransformerEncoderLayer] norm_first must be its default with disentangled");
  EXPECT_ERROR(TransformerEncoderLayer{layer_of(DisentangledOptions(3).position_buckets(1))},
               c10::ValueError, "position_buckets must be 0 or at least 2. Got 1");
  EXPECT_ERROR(ConvolutionBeside{layer_of(DisentangledOptions(3).conv_kernel_size(2))},
               c10::ValueError, "conv_kernel_size must be odd and positive. Got 2");
  const relative::Index index = relative::Buckets{};
  EXPECT_ERROR(TransformerEncoderLayer{layer_of(positions).relative(index)}, c10::ValueError,
               "[TransformerEncoderLayer] relative must be its default with disentangled");
  EXPECT_ERROR(
      TransformerEncoder(TransformerEncoderOptions(layer_of(positions), 1).relative(index)),
      c10::ValueError,
      "without a bottleneck, disentangled or Transformer-XL's attention and a conformer");
  TransformerEncoderLayer layer(layer_of(positions));
  EXPECT_ERROR(layer->forward_relative(torch::zeros({1, 2, 8}), {torch::zeros({5, 8}), {}}),
               c10::ValueError, "[DisentangledAttention] table must be [6, 8]. Got [5, 8]");
}

}  // namespace
}  // namespace posenc::disentangled_attention_test
