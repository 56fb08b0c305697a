// Tables that are more than one row a token: a row for each head, and xPos' scales.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "posenc/positions/functional/rotary.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "support/compare.h"

namespace posenc::functional {
namespace {

using posenc::testing::bit_equal;
using posenc::testing::message_of;
using How = RotaryFuncOptions;
using rotary::HeadAxis;

RotaryCosSin table_of(std::vector<int64_t> shape) {
  const auto angles = torch::rand(shape) * 6;
  return {angles.cos(), angles.sin()};
}

TEST(RotaryTables, EachHeadMayHaveItsOwn) {
  const auto options = rotary_preset("mochi", 8);  // (B, L, H, D)
  const auto q = torch::randn({2, 5, 3, 8}), k = torch::randn({2, 5, 3, 8});
  const auto table = table_of({1, 3, 5, 4});
  const auto how = How().head_axis(HeadAxis::AfterLength);
  const auto [rotated_q, rotated_k] = rotary(q, k, table, options, how);
  for (int64_t head = 0; head < 3; ++head) {
    const RotaryCosSin own{table.cos.select(1, head)[0], table.sin.select(1, head)[0]};
    const auto [one_q, one_k] =
        rotary(q.slice(2, head, head + 1), k.slice(2, head, head + 1), own, options, how);
    EXPECT_TRUE(bit_equal(rotated_q.slice(2, head, head + 1).contiguous(), one_q));
    EXPECT_TRUE(bit_equal(rotated_k.slice(2, head, head + 1).contiguous(), one_k));
  }
  const auto before = std::get<0>(
      rotary(q.transpose(1, 2), {}, table, options, How().head_axis(HeadAxis::BeforeLength)));
  EXPECT_TRUE(bit_equal(before.transpose(1, 2).contiguous(), rotated_q));
  const auto packed = std::get<0>(rotary(q[0], {}, table, options, how));
  EXPECT_TRUE(bit_equal(packed, rotated_q[0]));
}

TEST(RotaryTables, LearnedOnesHaveGradients) {
  const auto options = rotary_preset("timm_mixed", 8);
  const auto frequencies = torch::randn({1, 2, 1, 4}).requires_grad_();
  const auto angles =
      (frequencies * torch::arange(5).view({5, 1})).repeat_interleave(2, -1);  // (1, H, L, D)
  const auto q = torch::randn({1, 2, 5, 8});
  const auto y = std::get<0>(rotary(q, {}, {angles.cos(), angles.sin()}, options));
  (y * torch::randn({1, 2, 5, 8})).sum().backward();
  EXPECT_GT(frequencies.grad().abs().min().item<double>(), 0.0);
}

TEST(RotaryTables, ATableOfOneBatchFitsPackedSequences) {
  const auto options = rotary_preset("mochi", 8);
  const auto q = torch::randn({5, 3, 8});
  auto table = table_of({1, 5, 4});
  const auto how = How().head_axis(HeadAxis::AfterLength);
  const auto rotated = std::get<0>(rotary(q, {}, table, options, how));
  table.cos.requires_grad_();  // without the kernel
  EXPECT_TRUE(bit_equal(std::get<0>(rotary(q, {}, table, options, how)).detach(), rotated));
}

TEST(RotaryTables, XPosScalesQueriesUpAndKeysDown) {
  const auto options = rotary_preset("xpos", 8);
  const auto plain = rotary_preset("x_transformers", 8);
  const auto q = torch::randn({2, 3, 6, 12}), k = torch::randn({2, 3, 6, 12});
  const auto table = rotary_cos_sin(options, torch::arange(6));
  ASSERT_TRUE(table.scale.defined());
  EXPECT_TRUE(bit_equal(table.scale[3], torch::ones({8})));  // the middle of 0 to 5
  const auto [rotated_q, rotated_k] = rotary(q, k, options);
  const auto [plain_q, plain_k] = rotary(q, k, {table.cos, table.sin}, plain);
  const auto near = [&](const torch::Tensor& got, const torch::Tensor& expected) {
    return torch::allclose(got.slice(-1, 0, 8), expected, 1e-6, 1e-7) &&
           torch::equal(got.slice(-1, 8), q.slice(-1, 8));
  };
  EXPECT_TRUE(near(rotated_q, plain_q.slice(-1, 0, 8) * table.scale));
  EXPECT_TRUE(torch::allclose(rotated_k.slice(-1, 0, 8), plain_k.slice(-1, 0, 8) / table.scale,
                              1e-6, 1e-7));
  const auto out_q = torch::empty_like(q), out_k = torch::empty_like(k);
  rotary_out(out_q, out_k, q, k, table, options);
  EXPECT_TRUE(bit_equal(out_q, rotated_q));
  EXPECT_TRUE(bit_equal(out_k, rotated_k));
  EXPECT_EQ(rotary_cos_sin(options, torch::empty({0}, torch::kLong)).scale.sizes(),
            (std::vector<int64_t>{0, 8}));
}

// The first heads rotate, by their own rows.
TEST(RotaryTables, SomeHeadsRotateByTheirOwn) {
  const auto options = RotaryOptions(8, rotary::Pairing::Halves).rotary_heads(2);
  const auto q = torch::randn({2, 4, 5, 8});
  const RotaryCosSin table{torch::randn({2, 4, 5, 8}), torch::randn({2, 4, 5, 8})};
  const auto first = [](const torch::Tensor& t) { return t.slice(1, 0, 2); };
  const RotaryCosSin of_first{first(table.cos), first(table.sin)};
  const auto all = RotaryOptions(8, rotary::Pairing::Halves);
  const auto rotated = std::get<0>(functional::rotary(first(q), {}, of_first, all));
  EXPECT_TRUE(torch::equal(std::get<0>(functional::rotary(q, {}, table, options)),
                           torch::cat({rotated, q.slice(1, 2)}, 1)));
}

TEST(RotaryTables, CosAndSinOfDifferentShapesAreBroadcast) {
  const auto options = RotaryOptions(8, rotary::Pairing::Halves);
  const auto q = torch::randn({2, 4, 5, 8});
  const auto cos = torch::randn({2, 5, 8}), sin = torch::randn({1, 5, 8});
  const RotaryCosSin expanded{cos, sin.expand({2, 5, 8}).clone()};
  const auto want = std::get<0>(functional::rotary(q, {}, expanded, options));
  EXPECT_TRUE(torch::equal(std::get<0>(functional::rotary(q, {}, {cos, sin}, options)), want));
  const RotaryCosSin swapped{expanded.sin, cos}, mixed{sin, cos};
  EXPECT_TRUE(torch::equal(std::get<0>(functional::rotary(q, {}, mixed, options)),
                           std::get<0>(functional::rotary(q, {}, swapped, options))));
}

TEST(RotaryTables, WrongCachesAreErrorsAndNothingIsWritten) {
  const auto options = RotaryOptions(8, rotary::Pairing::Halves);
  const auto q = torch::randn({3, 4, 5, 8}), before = q.clone();
  const RotaryCosSin cache{torch::randn({9, 8}), torch::randn({9, 8})};
  const auto planes =
      functional::RotaryFuncOptions().position_ids(torch::zeros({3, 1, 5}, torch::kLong));
  EXPECT_THROW(functional::rotary(q, {}, cache, options, planes), c10::ValueError);
  EXPECT_THROW(functional::rotary_(q, {}, cache, options, planes), c10::ValueError);
  const auto rows = functional::RotaryFuncOptions().position_ids(torch::arange(5));
  const auto xpos = RotaryOptions(options).xpos_scale_base(512.0);
  EXPECT_THROW(functional::rotary(q, {}, cache, xpos, rows), c10::ValueError);
  EXPECT_THROW(functional::rotary_(q, {}, cache, xpos, rows), c10::ValueError);
  const RotaryCosSin learned{cache.cos.clone().requires_grad_(), cache.sin};
  EXPECT_THROW(functional::rotary_(q, {}, learned, options, rows), c10::ValueError);
  EXPECT_TRUE(torch::equal(q, before));
}

TEST(RotaryTables, WrongOnesAreErrors) {
  const auto q = torch::randn({2, 3, 5, 8});
  const auto refusal = [&](const RotaryCosSin& table, const char* preset, const How& how = {}) {
    return message_of([&] {
      rotary(q, {}, table, rotary_preset(preset, 8), How(how).head_axis(HeadAxis::BeforeLength));
    });
  };
  EXPECT_EQ(refusal(table_of({1, 4, 5, 4}), "mochi"),
            "[rotary] cos and sin with a row for each head must have the heads of q and k. Got [1, "
            "4, 5, 4] for [2, 3, 5, 8]");
  EXPECT_EQ(refusal(table_of({3, 3, 5, 4}), "mochi"),
            "[rotary] cos and sin must have the batch and length of q and k. Got [3, 3, 5, 4] for "
            "[2, 3, 5, 8]");
  EXPECT_EQ(refusal(table_of({1, 1, 1, 5, 4}), "mochi"),
            "[rotary] cos and sin must be floating-point (L, W), (B, L, W) or (B, H, L, W), W = 4. "
            "Got Float [1, 1, 1, 5, 4]");
  EXPECT_EQ(
      refusal(table_of({5, 8}), "xpos"),
      "[rotary] the table must have a scale with xpos_scale_base, and only then. Got no scale");
  RotaryCosSin scaled = table_of({5, 8});
  scaled.scale = torch::ones({5, 4});
  EXPECT_EQ(refusal(scaled, "xpos"),
            "[rotary] scale must have the shape of cos. Got [5, 4] for [5, 8]");
  EXPECT_EQ(
      refusal(scaled, "x_transformers"),
      "[rotary] the table must have a scale with xpos_scale_base, and only then. Got a scale");
  scaled.scale = torch::ones({5, 8});
  EXPECT_EQ(refusal(scaled, "xpos", How().inverse(true)),
            "[rotary] xPos has no inverse rotation. Got inverse");
  EXPECT_EQ(message_of([] { rotary_preset("qwen2_vl", 128).xpos_scale_base(512).validate(); }),
            "[rotary] xpos_scale_base needs Planes::One, and no Arithmetic::Complex or Addcmul");
  EXPECT_EQ(message_of([] { rotary_frequencies(rotary_preset("mochi", 8)); }),
            "[rotary] Frequency::Learned has no formula: pass the model's frequencies, or its cos "
            "and sin");
}

}  // namespace
}  // namespace posenc::functional
