// Attention with a rotary embedding: what a description asks for, positions, and steps.

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <limits>
#include <utility>
#include <vector>

#include "posenc/models/rotary_config.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "posenc/transformer/attention/multihead_attention.h"
#include "support/compare.h"

namespace posenc {
namespace {

namespace F = functional;

using testing::bit_equal;
using testing::message_of;
using testing::Op;
using testing::within;

constexpr int64_t kWidth = 32, kHeads = 4;

MultiheadAttention attention_of(RotaryOptions rotary) {
  torch::manual_seed(1);
  MultiheadAttention attention(MultiheadAttentionOptions(kWidth, kHeads).rotary(std::move(rotary)));
  attention->eval();
  return attention;
}

F::MultiheadAttentionWeights weights_of(const MultiheadAttention& attention) {
  F::MultiheadAttentionWeights weights;
  weights.in_proj_weight = attention->in_proj_weight;
  weights.in_proj_bias = attention->in_proj_bias;
  weights.out_proj_weight = attention->out_proj->weight;
  weights.out_proj_bias = attention->out_proj->bias;
  return weights;
}

// The attention of x to itself in which `rotary` turns the heads of q and k, and of v on request.
torch::Tensor composed(const MultiheadAttention& attention, const torch::Tensor& x,
                       const RotaryOptions& rotary, bool values, const AttentionMask& mask = {}) {
  const auto how = F::RotaryFuncOptions().head_axis(rotary::HeadAxis::BeforeLength);
  auto heads = F::split_heads(x, x, x, weights_of(attention), kHeads);
  std::tie(heads.query, heads.key) = F::rotary(heads.query, heads.key, rotary, how);
  if (values) heads.value = std::get<0>(F::rotary(heads.value, {}, rotary, how));
  return F::attend_heads(heads, weights_of(attention),
                         F::MultiheadAttentionFuncOptions(kHeads).mask(mask));
}

// The results of steps of one, three and two tokens.
torch::Tensor stepped(MultiheadAttention& attention, const torch::Tensor& x,
                      const AttentionMask& mask = {}) {
  auto cache = attention->make_cache(x.size(0), x.size(1));
  std::vector<torch::Tensor> pieces;
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>(0, 1), {1, 4}, {4, 6}})
    pieces.push_back(attention->step(x.slice(1, begin, end), cache, mask));
  return torch::cat(pieces, 1);
}

TEST(AttentionRotary, TurnsTheValuesWhereTheSystemDoes) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 6, kWidth});
  for (const bool values : {false, true}) {
    const auto rotary = rotary_options_from_hf(
        std::string(R"({"model_type": "roformer", "hidden_size": 32, "num_attention_heads": 4,
                        "rotary_value": )") +
        (values ? "true}" : "false}"));
    auto attention = attention_of(rotary);
    EXPECT_TRUE(bit_equal(attention->forward(x, x, x), composed(attention, x, rotary, values)));
    EXPECT_TRUE(within(Op::Layers, stepped(attention, x),
                       composed(attention, x, rotary, values, AttentionMask::causal())));
  }
}

TEST(AttentionRotary, RefusesWhatItCannotRotate) {
  const auto refusal = [](const char* preset) {
    return message_of([&] { attention_of(rotary_preset(preset, kWidth / kHeads)); });
  };
  EXPECT_NE(refusal("xcodec2").find("the number of the head (xcodec2)"), std::string::npos);
  EXPECT_NE(refusal("wav2vec2_conformer").find("before the projections"), std::string::npos);
  EXPECT_NE(refusal("deepseek_v4").find("must not rotate the result"), std::string::npos);
  EXPECT_NE(message_of([] {
              attention_of(rotary_preset("efficientloftr", kWidth));
            }).find("AppliedTo::AllHeads (efficientloftr, ltx) for 4 heads"),
            std::string::npos);
  MultiheadAttention one_head(
      MultiheadAttentionOptions(kWidth, 1).rotary(rotary_preset("efficientloftr", kWidth)));
  for (const char* model : {"neucodec", "wav2vec2-bert", "seamless_m4t"}) {
    const auto rotary =
        rotary_options_from_hf(std::string(R"({"model_type": ")") + model + R"("})");
    EXPECT_NE(rotary.applied_to(), rotary::AppliedTo::Heads) << model;
  }
}

TEST(AttentionRotary, TakesAnEmptyBatch) {
  const torch::NoGradGuard no_grad;
  auto attention = attention_of(rotary_preset("llama", 8));
  const auto x = torch::randn({0, 3, kWidth});
  auto cache = attention->make_cache(0, 5);
  EXPECT_EQ(attention->step(x, cache).sizes(), x.sizes());
  EXPECT_EQ(attention->forward(x, x, x).sizes(), x.sizes());
  EXPECT_NE(message_of([&] { attention->make_cache(-1, 5); }).find("batch must not be negative"),
            std::string::npos);
}

TEST(AttentionRotary, WideningNeedsFloat32) {
  const torch::NoGradGuard no_grad;
  for (const char* preset : {"codegen", "clvp"}) {
    auto attention = attention_of(rotary_preset(preset, 8));
    const auto x = torch::randn({2, 6, kWidth});
    EXPECT_TRUE(attention->forward(x, x, x).defined());
    attention->to(torch::kBFloat16);
    const auto half = x.to(torch::kBFloat16);
    auto cache = attention->make_cache(2, 6);
    EXPECT_NE(message_of([&] { attention->forward(half, half, half); }).find("must be float32"),
              std::string::npos);
    EXPECT_NE(message_of([&] { attention->step(half, cache); }).find("must be float32"),
              std::string::npos);
  }
}

TEST(AttentionRotary, TakesTheQueriesOfAnyPositions) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 6, kWidth}), last = x.slice(1, 5);
  const auto all = torch::arange(6), of_last = torch::arange(5, 6);
  auto attention = attention_of(rotary_preset("llama", 8));
  EXPECT_TRUE(within(Op::Layers, attention->forward(last, x, x, {}, of_last, all),
                     attention->forward(x, x, x).slice(1, 5)));
  const auto refusal = [&](const torch::Tensor& q, const torch::Tensor& k) {
    return message_of([&] { attention->forward(last, x, x, {}, q, k); });
  };
  EXPECT_NE(refusal({}, {}).find("lengths 1 and 6 and neither"), std::string::npos);
  EXPECT_NE(refusal(of_last, {}).find("no key_position_ids"), std::string::npos);
  EXPECT_NE(refusal({}, all).find("no position_ids"), std::string::npos);
  EXPECT_NE(refusal(of_last.unsqueeze(0), all).find("same number of axes"), std::string::npos);
}

// The mask that forward() needs, and a window of queries from -1 on.
TEST(AttentionRotary, StepsMoveACausalMask) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 6, kWidth});
  auto attention = attention_of(rotary_preset("llama", 8));
  const auto causal = AttentionMask::causal();
  EXPECT_TRUE(
      within(Op::Layers, stepped(attention, x, causal), attention->forward(x, x, x, causal)));
  EXPECT_TRUE(within(Op::Layers, stepped(attention, x, AttentionMask::causal(2)),
                     attention->forward(x, x, x, causal)));
}

TEST(AttentionRotary, XposStepsNeedOneMiddle) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 6, kWidth}), q = torch::randn({1, 1, 3, 8});
  auto rotary = rotary_preset("xpos", 8).xpos_scale_base(4.0);
  auto own = attention_of(rotary);
  EXPECT_NE(message_of([&] { stepped(own, x); }).find("needs RotaryOptions::xpos_middle"),
            std::string::npos);
  RotaryEmbedding module(rotary);
  const auto from_two = F::RotaryFuncOptions().offset(2);
  EXPECT_NE(message_of([&] { module->forward(q, q, 2); }).find("xpos_middle"), std::string::npos);
  EXPECT_NE(message_of([&] { F::rotary(q, q, rotary, from_two); }).find("xpos_middle"),
            std::string::npos);
  rotary.xpos_middle(4);
  auto fixed = attention_of(rotary);
  const auto causal = AttentionMask::causal();
  EXPECT_TRUE(within(Op::Layers, stepped(fixed, x), fixed->forward(x, x, x, causal)));
  EXPECT_TRUE(within(Op::Layers, stepped(fixed, x), own->forward(x, x, x, causal)));
  F::rotary(q, q, rotary, from_two);
}

// A step that fails has not lengthened the sequence that dynamic scaling remembers.
TEST(AttentionRotary, AnErrorLeavesTheLongestLength) {
  const torch::NoGradGuard no_grad;
  const auto dynamic = rotary_preset("llama", 8).scaling(rotary::Dynamic{4.0, 4});
  auto attention = attention_of(dynamic);
  const auto x = torch::randn({1, 12, kWidth}), some = x.slice(1, 0, 6);
  const auto before = attention->forward(some, some, some);
  auto cache = attention->make_cache(1, 6);
  EXPECT_NE(message_of([&] { attention->step(x, cache); }).find("the capacity is 6"),
            std::string::npos);
  EXPECT_TRUE(bit_equal(attention->forward(some, some, some), before));
}

}  // namespace
}  // namespace posenc
