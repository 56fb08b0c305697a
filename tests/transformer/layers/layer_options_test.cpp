// The effect of options of attention, norms and layers that have their defaults in all fixtures,
// and steps of several tokens.

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <utility>
#include <vector>

#include "posenc/positions/nn/layer_norm.h"
#include "posenc/positions/nn/rms_norm.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "posenc/transformer/layers/transformer_decoder.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "support/compare.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::Op;
using testing::within;

constexpr double kLargeEps = 0.5;

TEST(NormOptions, EpsIsAddedToTheVariance) {
  const auto x = torch::randn({3, 4, 6});
  LayerNorm centred(LayerNormOptions(6).eps(kLargeEps));
  EXPECT_TRUE(bit_equal(centred->forward(x),
                        torch::layer_norm(x, {6}, centred->weight, centred->bias, kLargeEps)));
  RMSNorm plain(RMSNormOptions(6).eps(kLargeEps));
  EXPECT_TRUE(bit_equal(plain->forward(x),
                        x * torch::rsqrt(x.pow(2).mean(-1, /*keepdim=*/true) + kLargeEps)));
}

TEST(NormOptions, AWeightThatOneIsAddedToStartsFromZero) {
  for (const bool plus_one : {false, true}) {
    RMSNorm norm(RMSNormOptions(6).plus_one(plus_one));
    EXPECT_TRUE(bit_equal(norm->weight.detach(), torch::full({6}, plus_one ? 0.0f : 1.0f)));
  }
}

TEST(LayerOptions, WithoutBiasThereIsNone) {
  TransformerEncoderLayer layer(TransformerLayerOptions(8, 2).bias(false));
  for (const auto& parameter : layer->named_parameters()) {
    EXPECT_EQ(parameter.key().find("bias"), std::string::npos) << parameter.key();
  }
}

// Batch and length differ: an exchange of the two would not fit the mask.
TEST(LayerOptions, SequenceFirstTakesTheSameMasks) {
  const auto options = TransformerLayerOptions(8, 2).dropout(0.0);
  TransformerEncoder rows(TransformerEncoderOptions(options, 1));
  TransformerEncoder columns(
      TransformerEncoderOptions(TransformerLayerOptions(options).batch_first(false), 1));
  const torch::NoGradGuard no_grad;
  const auto from = rows->named_parameters();
  for (auto& parameter : columns->named_parameters()) {
    parameter.value().copy_(from[parameter.key()]);
  }
  const auto x = torch::randn({3, 5, 8});
  auto is_token = torch::ones({3, 5}, torch::kBool);
  is_token[1].slice(0, 2).fill_(false);
  const auto mask = AttentionMask::key_padding(is_token) & AttentionMask::causal();
  EXPECT_TRUE(within(Op::Layers, columns->forward(x.transpose(0, 1), mask).transpose(0, 1),
                     rows->forward(x, mask)));
}

TEST(AttentionOptions, BiasesStartFromZero) {
  MultiheadAttention attention(16, 2);
  EXPECT_EQ(attention->in_proj_bias.count_nonzero().item<int64_t>(), 0);
  EXPECT_EQ(attention->out_proj->bias.count_nonzero().item<int64_t>(), 0);
}

MultiheadAttention rotating(rotary::HeadAxis axis) {
  torch::manual_seed(1);
  MultiheadAttention attention(MultiheadAttentionOptions(16, 2).rotary(
      RotaryEmbeddingOptions(rotary_preset("llama", 8)).head_axis(axis)));
  attention->eval();
  return attention;
}

// The heads are attention's own: whose axes a system's rotary embedding has makes no difference.
TEST(AttentionOptions, TheRotaryEmbeddingGetsItsAxesFromAttention) {
  const auto x = torch::randn({3, 2, 16});  // as many heads as tokens
  EXPECT_TRUE(bit_equal(rotating(rotary::HeadAxis::AfterLength)->forward(x, x, x),
                        rotating(rotary::HeadAxis::BeforeLength)->forward(x, x, x)));
}

// One token, then several after those that are cached.
TEST(AttentionSteps, AreTheCausalForwardInPieces) {
  MultiheadAttention plain(16, 2);
  plain->eval();
  for (auto attention : {plain, rotating(rotary::HeadAxis::BeforeLength)}) {
    const torch::NoGradGuard no_grad;
    const auto x = torch::randn({3, 6, 16});
    const auto whole = attention->forward(x, x, x, AttentionMask::causal());
    auto cache = attention->make_cache(3, 6);
    std::vector<torch::Tensor> pieces;
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>(0, 1), {1, 4}, {4, 6}}) {
      pieces.push_back(attention->step(x.slice(1, begin, end), cache));
    }
    EXPECT_TRUE(within(Op::Layers, torch::cat(pieces, 1), whole));
  }
}

TEST(AttentionSteps, AnErrorLeavesTheCacheAsItWas) {
  MultiheadAttention attention(16, 2);
  auto cache = attention->make_cache(3, 6);
  attention->step(torch::randn({3, 2, 16}), cache);
  const auto wrong = AttentionMask::allowed_pairs(torch::ones({5, 5}, torch::kBool));
  EXPECT_ERROR(attention->step(torch::randn({3, 1, 16}), cache, wrong), c10::ValueError,
               "must broadcast to the scores");
  EXPECT_EQ(cache.length(), 2);
}

struct DecoderSteps : ::testing::Test {
  const torch::NoGradGuard no_grad;
  TransformerDecoder decoder{
      TransformerDecoderOptions(TransformerLayerOptions(8, 2).dropout(0.0), 2)};
  torch::Tensor x = torch::randn({3, 4, 8}), memory = torch::randn({3, 5, 8});
};

TEST_F(DecoderSteps, TakeTheirRowsOfTheMemoryMask) {
  const auto mask = AttentionMask::allowed_pairs(torch::ones({4, 5}, torch::kBool).tril(1));
  const auto whole = decoder->forward(x, memory, AttentionMask::causal(), mask);
  auto cache = decoder->start(memory, 4, mask);
  std::vector<torch::Tensor> pieces;
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>(0, 1), {1, 3}, {3, 4}}) {
    pieces.push_back(decoder->step(x.slice(1, begin, end), cache));
  }
  EXPECT_TRUE(within(Op::Layers, torch::cat(pieces, 1), whole));
}

TEST_F(DecoderSteps, OfChosenRowsKeepTheirMasks) {
  auto is_token = torch::ones({3, 5}, torch::kBool);
  is_token[0].slice(0, 1).fill_(false);
  is_token[2].slice(0, 3).fill_(false);
  auto cache = decoder->start(memory, 4, AttentionMask::key_padding(is_token));
  decoder->step(x.slice(1, 0, 2), cache);
  const auto rows = torch::tensor({2, 0});
  cache.select(rows);
  const auto chosen = [&](const torch::Tensor& all) { return all.index_select(0, rows); };
  const auto whole = decoder->forward(chosen(x), chosen(memory), AttentionMask::causal(),
                                      AttentionMask::key_padding(chosen(is_token)));
  EXPECT_TRUE(within(Op::Layers, decoder->step(chosen(x).slice(1, 2), cache), whole.slice(1, 2)));
}

}  // namespace
}  // namespace posenc
