// Rotations of patches after other tokens, and rotations in float64 and in complex numbers.

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
using rotary::Arithmetic;
using rotary::CosLayout;
using rotary::CosType;
using rotary::HeadAxis;
using rotary::Pairing;
using rotary::Planes;

torch::Tensor first(const QueryKey& pair) { return std::get<0>(pair); }

TEST(RotaryAxial, PrefixTokensPass) {
  const auto options = rotary_preset("dinov3", 8);
  const auto table = rotary_cos_sin(options, rotary_grid(options, {2, 3}));
  for (const auto axis : {HeadAxis::BeforeLength, HeadAxis::AfterLength}) {
    const int64_t tokens = axis == HeadAxis::BeforeLength ? 2 : 1;
    const auto how = How().head_axis(axis);
    auto q = torch::randn({2, 9, 9, 8}).requires_grad_();  // 9 tokens, of which 3 have no place
    const auto expected = torch::cat(
        {q.narrow(tokens, 0, 3), first(rotary(q.narrow(tokens, 3, 6), {}, table, options, how))},
        tokens);
    const auto after = How(how).prefix_tokens(3);
    const auto rotated = first(rotary(q, {}, table, options, after));
    EXPECT_TRUE(bit_equal(rotated, expected));
    rotated.sin().sum().backward();
    const auto gradient = q.grad().clone();
    q.mutable_grad().reset();
    expected.sin().sum().backward();
    EXPECT_TRUE(bit_equal(gradient, q.grad()));
    const torch::NoGradGuard no_grad;
    const auto out = torch::empty_like(q), in_place = q.detach().clone();
    rotary_out(out, {}, q, {}, table, options, after);
    EXPECT_TRUE(bit_equal(out, expected));
    rotary_(in_place, {}, table, options, after);
    EXPECT_TRUE(bit_equal(in_place, expected));
  }
}

TEST(RotaryAxial, PositionsBeginAfterThePrefix) {
  const auto options = rotary_preset("llama", 8);
  const auto q = torch::randn({1, 2, 5, 8});
  const auto rotated = first(rotary(q, {}, options, How().prefix_tokens(2).offset(4)));
  EXPECT_TRUE(bit_equal(rotated.narrow(2, 2, 3),
                        first(rotary(q.narrow(2, 2, 3), {}, options, How().offset(4)))));
}

TEST(RotaryAxial, OnlyTheFirstHeadsRotate) {
  const auto options = rotary_preset("qwen2_5_omni_dit", 8);
  const auto all = RotaryOptions(options).rotary_heads(0);
  const auto q = torch::randn({2, 4, 5, 8});
  const auto expected =
      torch::cat({first(rotary(q.narrow(1, 0, 1), {}, all)), q.narrow(1, 1, 3)}, 1);
  EXPECT_TRUE(bit_equal(first(rotary(q, {}, options)), expected));
  const auto fewer = q.narrow(1, 0, 1);
  EXPECT_TRUE(bit_equal(first(rotary(fewer, {}, options)), first(rotary(fewer, {}, all))));
}

TEST(RotaryAxial, TheTwoOfAPairMayDifferInAngle) {
  const auto options = rotary_preset("vjepa2", 12);
  const auto table = rotary_cos_sin(options, torch::randint(0, 9, {5, 3}));
  for (const auto dtype : {torch::kFloat, torch::kBFloat16}) {
    const auto q = torch::randn({2, 3, 5, 14}).to(dtype), x = q.narrow(3, 0, 12);
    const RotaryCosSin own{table.cos.to(dtype), table.sin.to(dtype)};
    const auto turned = torch::stack({-x.slice(3, 1, 12, 2), x.slice(3, 0, 12, 2)}, -1).flatten(-2);
    const auto expected = torch::cat({x * own.cos + turned * own.sin, q.narrow(3, 12, 2)}, -1);
    EXPECT_TRUE(bit_equal(first(rotary(q, {}, own, options)), expected));
  }
}

TEST(RotaryAxial, ADoubleRotationRoundsOnce) {
  const auto options =
      RotaryOptions(8, Pairing::Halves).cos_type(CosType::Float32).arithmetic(Arithmetic::Float64);
  const auto q = torch::randn({1, 2, 30, 8}).to(torch::kBFloat16);
  const auto table = rotary_cos_sin(options, torch::arange(30));
  const auto wide = RotaryOptions(options).arithmetic(Arithmetic::Promoted);
  const RotaryCosSin doubles{table.cos.to(torch::kDouble), table.sin.to(torch::kDouble)};
  const auto expected = first(rotary(q.to(torch::kDouble), {}, doubles, wide));
  EXPECT_TRUE(bit_equal(first(rotary(q, {}, table, options)), expected.to(torch::kBFloat16)));
}

TEST(RotaryAxial, ComplexNumbersOfCosAndSin) {
  auto options = RotaryOptions(16, Pairing::Adjacent)
                     .cos_layout(CosLayout::Single)
                     .cos_type(CosType::Float32)
                     .arithmetic(Arithmetic::Complex);
  const auto q = torch::randn({2, 3, 7, 16});
  const auto pairs = torch::view_as_complex(q.view({2, 3, 7, 8, 2}));
  const auto rotated = [&](const RotaryCosSin& table) {
    return torch::view_as_real(pairs * torch::complex(table.cos, table.sin)).flatten(-2);
  };
  const auto table = rotary_cos_sin(options, torch::arange(7));
  EXPECT_TRUE(bit_equal(first(rotary(q, {}, table, options)), rotated(table)));
  options.angle_type(rotary::AngleType::Float64)
      .cos_type(CosType::Float64)
      .cos_layout(CosLayout::Complex);
  const auto wide = rotary_cos_sin(options, torch::arange(7));
  EXPECT_EQ(wide.cos.scalar_type(), torch::kDouble);
  EXPECT_TRUE(bit_equal(first(rotary(q, {}, wide, options)), rotated(wide).to(torch::kFloat)));
}

TEST(RotaryAxial, WrongPrefixesAreErrors) {
  const auto options = rotary_preset("llama", 8);
  const auto q = torch::randn({1, 2, 5, 8});
  const auto refused = [&](int64_t tokens) {
    return message_of([&] { rotary(q, {}, options, How().prefix_tokens(tokens)); });
  };
  EXPECT_EQ(refused(-1), "[rotary] prefix_tokens must lie in [0, 5], the tokens of q. Got -1");
  EXPECT_EQ(refused(6), "[rotary] prefix_tokens must lie in [0, 5], the tokens of q. Got 6");
  const auto table = rotary_cos_sin(options, torch::arange(5));
  const auto out = torch::zeros_like(q);
  EXPECT_EQ(message_of([&] { rotary_out(out, {}, q, {}, table, options, How().prefix_tokens(1)); }),
            "[rotary] cos and sin must have the batch and length of q and k. Got [5, 8] for "
            "[1, 2, 4, 8]");
  EXPECT_TRUE(bit_equal(out, torch::zeros_like(q)));
}

}  // namespace
}  // namespace posenc::functional
