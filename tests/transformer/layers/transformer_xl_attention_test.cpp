// Layers whose attention multiplies queries by keys of distances, as XLNet's.

#include "posenc/transformer/attention/transformer_xl_attention.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>

#include "modules/drawn_module.h"
#include "posenc/inference/freeze.h"
#include "posenc/positions/sinusoid/table.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "support/compare.h"
#include "transformer/with_threads.h"

namespace posenc::transformer_xl_attention_test {
namespace {

using testing::bit_equal;
using testing::drawn;
using testing::expect_with_threads;
using testing::near;

TransformerXLOptions positions() { return TransformerXLOptions(SinusoidOptions(8)).segments(true); }

TransformerLayerOptions layer_of(const TransformerXLOptions& own) {
  return TransformerLayerOptions(8, 2)
      .d_ff(7)
      .dropout(0.0)
      .qkv_bias(false)
      .out_bias(false)
      .transformer_xl(own);
}

torch::Tensor table_of(const TransformerXLOptions& own, int64_t length) {
  return sinusoid_rows(own.sinusoid(), torch::arange(length - 1, -length, -1)).unsqueeze(0);
}

TEST(TransformerXLAttention, AddsTheProductsOfEachDistanceAndSegment) {
  const torch::NoGradGuard no_grad;
  const int64_t length = 6;
  auto attention = drawn(TransformerXLAttention(TransformerXLAttentionOptions(8, 1, positions())));
  const auto x = torch::randn({1, length, 8});
  const auto segments = torch::tensor({{0, 0, 3, 3, 3, 0}});
  const auto parts = torch::linear(x[0], attention->in_proj_weight).chunk(3, 1);
  auto scores = torch::empty({length, length});
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t j = 0; j < length; ++j) {
      const auto row = attention->position_proj->forward(
          sinusoid_rows(positions().sinusoid(), torch::tensor({i - j})));
      const int64_t differ = segments[0][i].equal(segments[0][j]) ? 0 : 1;
      scores[i][j] =
          (parts[0][i] + attention->content_bias[0]).dot(parts[1][j]) +
          (parts[0][i] + attention->position_bias[0]).dot(row[0]) +
          (parts[0][i] + attention->segment_bias[0]).dot(attention->segment_embed[differ][0]);
    }
  }
  const auto weights = (scores / std::sqrt(8.0)).softmax(-1);
  const auto expected = attention->out_proj->forward(weights.matmul(parts[2]));
  EXPECT_TRUE(
      near(attention->forward(x, table_of(positions(), length), {}, segments)[0], expected));
}

// With each option and mask, tokens of padding between others, and numbers of threads.
TEST(TransformerXLAttention, FrozenLayersComputeTheSame) {
  const torch::NoGradGuard no_grad;
  const int64_t length = 70;  // more than a tile of keys
  const auto x = torch::randn({4, length, 8});
  auto tokens = torch::ones({4, length}, torch::kBool);
  tokens[0].slice(0, 50).fill_(false);
  tokens[1].slice(0, 0, 20).fill_(false);
  tokens[2].slice(0, 5, 30, 2).fill_(false);
  const auto segments = torch::randint(3, {4, length});
  const TransformerLayerOptions kinds[] = {
      layer_of(positions()), layer_of(positions().clamp_len(9)),
      layer_of(positions().bi_data(true)), layer_of(positions()).window(3),
      layer_of(positions()).qkv_bias(true).out_bias(true)};
  for (const TransformerLayerOptions& kind : kinds) {
    auto encoder = drawn(TransformerEncoder(TransformerEncoderOptions(kind, 2)));
    const auto frozen = freeze(encoder);
    for (const AttentionMask& mask :
         {AttentionMask(), AttentionMask::key_padding(tokens), AttentionMask::causal()}) {
      for (const torch::Tensor& types : {torch::Tensor(), segments}) {
        TransformerEncoderRecord nothing;
        expect_with_threads(
            encoder->forward_with(x, mask, nothing, {}, {}, types),
            [&] { return frozen.forward_with(x, mask, nothing, {}, types); },
            mask.padding_keys().defined() ? tokens : torch::Tensor());
      }
    }
  }
}

// The keys of distances are kept for the longest sequence so far.
TEST(TransformerXLAttention, FrozenBitsDoNotDependOnEarlierCalls) {
  const torch::NoGradGuard no_grad;
  auto encoder = drawn(TransformerEncoder(TransformerEncoderOptions(layer_of(positions()), 1)));
  const auto x = torch::randn({2, 200, 8}), beginning = x.narrow(1, 0, 5);
  const auto frozen = freeze(encoder);
  const auto before = frozen.forward(beginning);
  EXPECT_TRUE(near(frozen.forward(x), encoder->forward(x)));
  EXPECT_TRUE(bit_equal(frozen.forward(beginning), before));
}

// Of 64 bits, as in transformers: 2^32 is another segment than 0.
TEST(TransformerXLAttention, SegmentsAreAnyIntegers) {
  const torch::NoGradGuard no_grad;
  auto encoder = drawn(TransformerEncoder(TransformerEncoderOptions(layer_of(positions()), 1)));
  const auto x = torch::randn({2, 4, 8});
  const auto segments = torch::tensor({{0, 1, 1, 0}, {0, 0, 0, 1}}) * (int64_t{1} << 32);
  TransformerEncoderRecord nothing;
  EXPECT_TRUE(near(freeze(encoder).forward_with(x, {}, nothing, {}, segments),
                   encoder->forward_with(x, {}, nothing, {}, {}, segments)));
}

TEST(TransformerXLAttention, FreezingSeesTheOptionsOfPositions) {
  const torch::NoGradGuard no_grad;
  auto encoder = drawn(TransformerEncoder(TransformerEncoderOptions(layer_of(positions()), 1)));
  const auto x = torch::randn({2, 4, 8});
  const std::pair<TransformerXLOptions, const char*> others[] = {
      {positions().clamp_len(1), "clamp_len must be 0, as in the rest of the model. Got 1"},
      {positions().bi_data(true), "bi_data must be false, as in the rest of the model. Got true"},
      {positions().sinusoid(SinusoidOptions(8).base(50.0)),
       "sinusoid.base must be 10000, as in the rest of the model. Got 50"}};
  for (const auto& [other, text] : others) {
    const auto frozen = freeze(encoder);
    encoder->shifted_positions->options.transformer_xl(other);
    EXPECT_ERROR(frozen.forward(x), c10::Error, "Got other options of shifted_positions");
    EXPECT_ERROR(freeze(encoder), c10::ValueError,
                 std::string("[freeze] shifted_positions: transformer_xl.") + text);
    encoder->shifted_positions->options.transformer_xl(positions());
    auto& layer = encoder->layers->at<TransformerEncoderLayerImpl>(0);
    layer.transformer_xl_attn->options.positions(other);
    EXPECT_ERROR(freeze(encoder), c10::ValueError,
                 std::string("[freeze] layers.0.self_attn: positions.") + text);
    layer.transformer_xl_attn->options.positions(positions());
  }
}

TEST(TransformerXLAttention, ABatchMayBeEmpty) {
  for (const bool bi_data : {false, true}) {
    const auto options = layer_of(positions().bi_data(bi_data)).dropout(0.1);
    auto encoder = TransformerEncoder(TransformerEncoderOptions(options, 1));
    for (const auto& x : {torch::zeros({0, 5, 8}), torch::zeros({2, 0, 8})}) {
      EXPECT_EQ(freeze(encoder).forward(x).sizes(), x.sizes());
      for (const bool is_training : {false, true}) {
        encoder->train(is_training);
        EXPECT_EQ(encoder->forward(x).sizes(), x.sizes());
      }
    }
  }
}

TEST(TransformerXLAttention, FrozenBytesAreOfWhatIsKept) {
  const auto bytes_of = [](const TransformerXLOptions& own) {
    return freeze(TransformerEncoder(TransformerEncoderOptions(layer_of(own), 1))).bytes().own;
  };
  EXPECT_EQ(bytes_of(positions().mask_embedding(true)), bytes_of(positions()));
}

TEST(TransformerXLAttention, PaddingAttendsToItselfToo) {
  const torch::NoGradGuard no_grad;
  auto encoder = drawn(TransformerEncoder(TransformerEncoderOptions(layer_of(positions()), 1)));
  const auto x = torch::randn({1, 4, 8});
  const auto tokens = torch::tensor({{1, 1, 0, 0}});
  TransformerEncoderRecord record;
  record.output_attentions = true;
  encoder->forward_with(x, AttentionMask::key_padding(tokens), record);
  const auto seen = record.attentions[0][0][0].gt(0);
  const auto expected = torch::tensor({{1, 1, 0, 0}, {1, 1, 0, 0}, {1, 1, 1, 0}, {1, 1, 0, 1}});
  EXPECT_TRUE(seen.equal(expected.to(torch::kBool)));
}

TEST(TransformerXLAttention, RefusesWhatDoesNotFit) {
  EXPECT_ERROR(TransformerEncoderLayer{layer_of(positions()).norm_first(true)}, c10::ValueError,
               "[TransformerEncoderLayer] norm_first must be its default with transformer_xl");
  EXPECT_ERROR(TransformerEncoderLayer{layer_of(positions()).key_bias(false)}, c10::ValueError,
               "[TransformerEncoderLayer] key_bias must be its default with transformer_xl");
  EXPECT_ERROR(TransformerEncoderLayer{layer_of(TransformerXLOptions(SinusoidOptions(6)))},
               c10::ValueError, "the sinusoid must have embed_dim 8 channels. Got 6");
  EXPECT_ERROR(TransformerEncoderLayer{layer_of(positions().clamp_len(-1))}, c10::ValueError,
               "clamp_len must not be negative. Got -1");
  auto encoder =
      TransformerEncoder(TransformerEncoderOptions(layer_of(positions().bi_data(true)), 1));
  const auto x = torch::zeros({3, 2, 8});
  const char* odd = "the number of sequences must be even with bi_data. Got 3";
  EXPECT_ERROR(encoder->forward(x), c10::ValueError, odd);
  EXPECT_ERROR(freeze(encoder).forward(x), c10::ValueError, odd);
  TransformerEncoderLayer layer(layer_of(positions()));
  const auto table = table_of(positions(), 2);
  EXPECT_ERROR(layer->forward_relative(x, {table.narrow(1, 0, 2), {}}), c10::ValueError,
               "[TransformerXLAttention] table must be (G, 2 L - 1, E) = (G, 3, 8)");
  EXPECT_ERROR(layer->forward_relative(x, {table, torch::zeros({3, 1}, torch::kLong)}),
               c10::ValueError, "the segments of tokens must be [3, 2]. Got [3, 1]");
  EXPECT_ERROR(layer->forward_relative(x, {table, torch::zeros({3, 2})}), c10::TypeError,
               "the segments of tokens must be integers. Got Float");
  TransformerEncoder plain(TransformerEncoderOptions({8, 2}, 1));
  TransformerEncoderRecord nothing;
  const auto segments = torch::zeros({3, 2}, torch::kLong);
  EXPECT_ERROR(plain->forward_with(x, {}, nothing, {}, {}, segments), c10::ValueError,
               "segments must be undefined without TransformerXLOptions::segments");
  EXPECT_ERROR(freeze(plain).forward_with(x, {}, nothing, {}, segments), c10::ValueError,
               "segments must be undefined without TransformerXLOptions::segments");
}

}  // namespace
}  // namespace posenc::transformer_xl_attention_test
