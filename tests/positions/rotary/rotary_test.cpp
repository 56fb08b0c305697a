#include "posenc/positions/rotary/rotary.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "posenc/positions/rotary/rotary_preset.h"
#include "support/compare.h"
#include "support/threads.h"

namespace posenc::rotary_test {
namespace {

using posenc::testing::bit_equal;
using posenc::testing::message_of;
using rotary::CosLayout;
using rotary::Pairing;
using rotary::Planes;

RotaryOptions llama(int64_t dim) { return rotary_preset("llama", dim); }
at::Tensor ids(std::vector<int64_t> values) { return torch::tensor(values); }
std::string refusal(const RotaryOptions& options) {
  return message_of([&] { options.validate(); });
}

TEST(Rotary, HalvesAreLlamasOwnOperations) {
  const auto positions = torch::arange(40);
  const auto f = torch::pow(10000.0, torch::arange(0, 64, 2, torch::kFloat) / 64).reciprocal();
  const auto angles = positions.to(torch::kFloat).unsqueeze(-1) * f;
  const auto table = rotary_cos_sin(llama(64), positions);
  EXPECT_TRUE(bit_equal(table.cos, torch::cat({angles, angles}, -1).cos()));
  EXPECT_TRUE(bit_equal(table.sin, torch::cat({angles, angles}, -1).sin()));
  const auto half = rotary_cos_sin(llama(64), positions, torch::kBFloat16);
  EXPECT_TRUE(bit_equal(half.cos, table.cos.to(torch::kBFloat16)));
}

TEST(Rotary, LayoutsHoldTheSameEntries) {
  const auto positions = ids({0, 5, 1000});
  const auto halves = rotary_cos_sin(llama(12), positions).cos;
  auto options = RotaryOptions(12, Pairing::Adjacent).cos_layout(CosLayout::Single);
  const auto single = rotary_cos_sin(options, positions).cos;
  const auto pairs = rotary_cos_sin(options.cos_layout(CosLayout::Pairs), positions).cos;
  EXPECT_TRUE(bit_equal(halves, torch::cat({single, single}, -1)));
  EXPECT_TRUE(bit_equal(pairs, single.repeat_interleave(2, -1)));
}

TEST(Rotary, AnOddDimTurnsOneMoreChannel) {
  auto options = RotaryOptions(21, Pairing::Halves).part(rotary::Part::First);
  EXPECT_EQ(options.rotary_dim(), 22);
  const auto f = torch::pow(10000.0, torch::arange(0, 21, 2, torch::kFloat) / 21).reciprocal();
  EXPECT_TRUE(bit_equal(rotary_frequencies(options).inv_freq, f));
}

TEST(Rotary, EqualPlanesAreOnePosition) {
  const auto positions = ids({3, 90, 4000}).unsqueeze(0);
  const auto plain = rotary_cos_sin(llama(128), positions).cos;
  for (const char* name : {"qwen2_vl", "qwen3_vl"}) {
    const auto options = rotary_preset(name, 128);
    EXPECT_TRUE(bit_equal(rotary_cos_sin(options, positions).cos, plain)) << name;
    const auto three = positions.expand({3, 1, 3}).contiguous();
    EXPECT_TRUE(bit_equal(rotary_cos_sin(options, three).cos, plain)) << name;
  }
}

TEST(Rotary, DynamicFrequenciesDependOnTheLength) {
  auto options = llama(64).scaling(rotary::Dynamic{4.0, 128});
  EXPECT_TRUE(options.length_dependent());
  const auto first = rotary_frequencies(options).inv_freq;
  EXPECT_TRUE(bit_equal(first, rotary_frequencies(options, 128).inv_freq));
  EXPECT_FALSE(torch::equal(first, rotary_frequencies(options, 129).inv_freq));
  const auto table = rotary_cos_sin(options, ids({0, 400}));
  const auto grown = rotary_cos_sin(options, rotary_frequencies(options, 401), ids({0, 400}));
  EXPECT_TRUE(bit_equal(table.cos, grown.cos));
}

TEST(Rotary, LongRopeChangesItsSetBeyondTheOriginalLength) {
  rotary::LongRope scaling;
  scaling.short_factor = {1.0, 1.5};
  scaling.long_factor = {2.0, 40.0};
  scaling.original_max_position = 16;
  scaling.factor = 4.0;
  const auto options = llama(4).scaling(scaling);
  EXPECT_FALSE(torch::equal(rotary_frequencies(options, 16).inv_freq,
                            rotary_frequencies(options, 17).inv_freq));
  EXPECT_DOUBLE_EQ(rotary_frequencies(options).attention_scaling,
                   std::sqrt(1 + std::log(4.0) / std::log(16.0)));
}

TEST(Rotary, ExactIsTheRealAngleAtAnyPosition) {
  auto options = llama(16).precision(Precision::Exact);
  const std::vector<int64_t> positions = {0, 1, 4097, (int64_t{1} << 31) - 1};
  const auto table = rotary_cos_sin(options, ids(positions));
  for (size_t row = 0; row < positions.size(); ++row) {
    for (int64_t i = 0; i < 8; ++i) {
      const long double f = std::pow(10000.0L, -static_cast<long double>(i) / 8.0L);
      const auto expected = std::cos(static_cast<long double>(positions[row]) * f);
      const auto got = table.cos[static_cast<int64_t>(row)][i].item<float>();
      EXPECT_LE(std::abs(got - expected), 6.1e-8L) << positions[row] << " " << i;
    }
  }
  EXPECT_TRUE(bit_equal(rotary_cos_sin(options, ids({77}), torch::kDouble).sin.to(torch::kFloat),
                        rotary_cos_sin(options, ids({77})).sin));
}

// Positions at equal distances are computed together, others one by one: the same entries, in each
// layout and type.
TEST(Rotary, ExactPositionsInARowAreAsOnTheirOwn) {
  for (const CosLayout layout : {CosLayout::Halves, CosLayout::Pairs, CosLayout::Single}) {
    for (const auto dtype : {torch::kFloat, torch::kDouble, torch::kBFloat16}) {
      auto options = RotaryOptions(128, Pairing::Adjacent).cos_layout(layout);
      options.precision(Precision::Exact);
      const auto row = torch::arange(100001, 100001 + 7 * 300, 7);
      const auto own = torch::cat({row, ids({3})});  // which is out of step
      const auto together = rotary_cos_sin(options, row, dtype);
      const auto alone = rotary_cos_sin(options, own, dtype);
      EXPECT_TRUE(bit_equal(together.cos, alone.cos.slice(0, 0, 300)));
      EXPECT_TRUE(bit_equal(together.sin, alone.sin.slice(0, 0, 300)));
      EXPECT_TRUE(together.cos.is_contiguous() && together.sin.is_contiguous());
      const auto first = layout == CosLayout::Halves  ? together.cos.slice(1, 0, 64)
                         : layout == CosLayout::Pairs ? together.cos.slice(1, 0, 128, 2)
                                                      : together.cos;
      const auto second = layout == CosLayout::Halves  ? together.cos.slice(1, 64)
                          : layout == CosLayout::Pairs ? together.cos.slice(1, 1, 128, 2)
                                                       : first;
      EXPECT_TRUE(bit_equal(first, second));
      const auto angle = row.to(torch::kDouble).unsqueeze(-1) *
                         torch::pow(10000.0, torch::arange(0, 128, 2, torch::kDouble) / -128);
      EXPECT_LT((first.to(torch::kDouble) - angle.cos()).abs().max().item<double>(),
                dtype == torch::kBFloat16 ? 0.002 : 1e-7);
    }
  }
}

TEST(Rotary, ExactScalingsAreNearTheSystems) {
  rotary::LongRope longrope{{1.0, 1.1, 1.3, 2.0}, {2.0, 3.0, 4.5, 9.0}, 32, 4.0, {}};
  rotary::Yarn yarn;
  yarn.factor = 4.0;
  yarn.original_max_position = 64;
  const std::vector<rotary::Scaling> scalings = {rotary::Linear{3.7},
                                                 rotary::Proportional{0.5, 2.0},
                                                 rotary::Dynamic{4.0, 8},
                                                 rotary::NtkAlpha{50.0},
                                                 yarn,
                                                 longrope,
                                                 rotary::PhiMoe{{1.0, 2.0, 3.0, 4.0}, 8, 1.1, 1.3},
                                                 rotary::Llama3{8.0, 1.0, 4.0, 64}};
  const auto positions = torch::arange(50);
  for (size_t i = 0; i < scalings.size(); ++i) {
    auto options = llama(8).scaling(scalings[i]);
    const auto reference = rotary_cos_sin(options, positions);
    const auto exact = rotary_cos_sin(options.precision(Precision::Exact), positions);
    EXPECT_LT((reference.cos - exact.cos).abs().max().item<double>(), 1e-5) << i;
    EXPECT_LT((reference.sin - exact.sin).abs().max().item<double>(), 1e-5) << i;
  }
}

TEST(Rotary, ThreadsDoNotChangeABit) {
  for (const Precision precision : {Precision::Reference, Precision::Exact}) {
    auto options = llama(118).precision(precision);
    const auto positions = torch::arange(3000);
    at::Tensor one;
    {
      const posenc::testing::Threads threads(1);
      one = rotary_cos_sin(options, positions).cos;
    }
    const posenc::testing::Threads threads(2);
    EXPECT_TRUE(bit_equal(one, rotary_cos_sin(options, positions).cos));
  }
}

TEST(Rotary, PresetsAreFoundByName) {
  EXPECT_EQ(find_rotary_preset("cohere").name, "cohere");
  for (const RotaryPreset& preset : rotary_presets()) EXPECT_EQ(preset.options.dim(), 0);
  EXPECT_EQ(message_of([] { rotary_preset("lama", 64); }).substr(0, 68),
            "[rotary_preset] there is no preset `lama`; the nearest are llama, ll");
}

TEST(Rotary, WrongOptionsAreErrors) {
  EXPECT_EQ(refusal(llama(0)), "[rotary] dim must lie in [1, 2^20]. Got 0");
  EXPECT_EQ(refusal(llama(7)),
            "[rotary] an odd dim rotates one more channel: part must be First or Last. Got 7");
  EXPECT_EQ(refusal(llama(8).base(0.0)), "[rotary] base must be positive and finite. Got 0");
  EXPECT_EQ(refusal(llama(8).scaling(rotary::Linear{-1.0})),
            "[rotary] factor must be positive and finite. Got -1");
  EXPECT_EQ(refusal(llama(2).scaling(rotary::Dynamic{2.0, 64})),
            "[rotary] dim must be above 2 for rotary::Dynamic. Got 2");
  EXPECT_EQ(refusal(llama(2).scaling(rotary::NtkAlpha{2.0})),
            "[rotary] dim must be above 2 for rotary::NtkAlpha. Got 2");
  EXPECT_EQ(refusal(llama(8).scaling(rotary::Proportional{1.5, 1.0})),
            "[rotary] proportion must lie in (0, 1]. Got 1.5");
  EXPECT_EQ(refusal(llama(8).scaling(rotary::LongRope{{1.0}, {1.0}, 8, 1.0, {}})),
            "[rotary] short_factor must have dim / 2 = 4 numbers. Got 1");
  EXPECT_EQ(refusal(llama(2).scaling(rotary::LongRope{{1.0}, {1.0}, 1, 2.0, {}})),
            "[rotary] original_max_position must be above 1 for rotary::LongRope, which divides "
            "by its logarithm. Got 1");
  EXPECT_EQ(refusal(llama(8).xpos_middle(2)),
            "[rotary] xpos_middle belongs to xpos_scale_base. Got 2");
  auto odd = RotaryOptions(7, Pairing::Halves).part(rotary::Part::First);
  rotary::Yarn yarn{2.0, 64};
  EXPECT_EQ(refusal(odd.scaling(yarn)), "[rotary] dim must be even for rotary::Yarn. Got 7");
  EXPECT_EQ(refusal(llama(8).base(1.0).scaling(yarn)),
            "[rotary] base must not be 1 for rotary::Yarn, which divides by its logarithm. Got 1");
  yarn.attention_factor = INFINITY;
  EXPECT_EQ(refusal(llama(8).scaling(yarn)), "[rotary] attention_factor must be finite. Got inf");
}

TEST(Rotary, SectionsMustFit) {
  const auto halves = [](Planes planes, std::vector<int64_t> sections) {
    return refusal(llama(16).planes(planes).sections(std::move(sections)));
  };
  EXPECT_EQ(halves(Planes::Chunked, {2, 2, 3}),
            "[rotary] sections must sum to dim / 2 = 8. Got [2, 2, 3]");
  EXPECT_EQ(halves(Planes::Chunked, {-1, 6, 3}),
            "[rotary] sections must not be negative. Got [-1, 6, 3]");
  EXPECT_EQ(halves(Planes::Interleaved, {4, 4}),
            "[rotary] sections must be three numbers. Got [4, 4]");
  EXPECT_EQ(halves(Planes::HeightWidth, {2, 3, 3}),
            "[rotary] sections must be three numbers, the first two equal and the last positive. "
            "Got [2, 3, 3]");
  EXPECT_EQ(halves(Planes::HeightWidth, {4, 4, 0}),
            "[rotary] sections must be three numbers, the first two equal and the last positive. "
            "Got [4, 4, 0]");
  EXPECT_EQ(halves(Planes::One, {8}), "[rotary] these planes have no sections. Got [8]");
  EXPECT_EQ(refusal(llama(6).planes(Planes::RowColumn)),
            "[rotary] dim must be a multiple of 4 for these planes. Got 6");
}

TEST(Rotary, LayoutsMustFitThePairing) {
  const auto with = [](Pairing pairing, CosLayout layout) {
    return refusal(RotaryOptions(8, pairing).cos_layout(layout));
  };
  EXPECT_EQ(with(Pairing::Adjacent, CosLayout::Complex),
            "[rotary] Arithmetic::Complex takes CosLayout::Complex or Single, and "
            "CosLayout::Complex Arithmetic::Complex");
  EXPECT_EQ(with(Pairing::AdjacentToHalves, CosLayout::Pairs),
            "[rotary] CosLayout::Pairs belongs to Pairing::Adjacent or Halves");
  const auto complex = rotary_preset("deepseek_v2", 8);
  EXPECT_EQ(refusal(RotaryOptions(complex).reversed(true)),
            "[rotary] complex numbers are adjacent pairs that rotate forward");
  EXPECT_EQ(refusal(RotaryOptions(8, Pairing::Adjacent).planes(Planes::Doubled).sections({2, 2})),
            "[rotary] Planes::Doubled belongs to Pairing::Halves and CosLayout::Halves");
}

TEST(Rotary, WrongPositionsAreErrors) {
  const auto refused = [](const at::Tensor& positions, at::ScalarType dtype = torch::kFloat) {
    return message_of([&] { rotary_cos_sin(llama(8), positions, dtype); });
  };
  EXPECT_EQ(refused(ids({0, -3})), "[rotary] positions must lie in [0, 2^31). Got -3");
  EXPECT_EQ(refused(ids({int64_t{1} << 31})),
            "[rotary] positions must lie in [0, 2^31). Got 2147483648");
  EXPECT_EQ(refused(torch::ones({2})), "[rotary] position_ids must be integers. Got Float");
  EXPECT_EQ(refused(torch::zeros({3, 1, 2}, torch::kLong)),
            "[rotary] position_ids must be (L) or (B, L). Got [3, 1, 2]");
  EXPECT_EQ(refused({}), "[rotary] position_ids must be a tensor");
  EXPECT_EQ(refused(ids({0}), torch::kLong),
            "[rotary] cos and sin must be floating-point. Got Long");
  EXPECT_EQ(
      message_of([] { rotary_cos_sin(llama(8), RotaryFrequencies{torch::ones({3})}, ids({0})); }),
      "[rotary] inv_freq must be (4). Got [3]");
  EXPECT_EQ(message_of([] { rotary_frequencies(llama(8), -1); }),
            "[rotary] length must not be negative. Got -1");
  EXPECT_TRUE(bit_equal(rotary_cos_sin(llama(8), ids({})).cos, torch::empty({0, 8})));
}

// beta_fast below beta_slow, and equal factors of Llama 3: only the rounding differs.
TEST(Rotary, ExactScalesInAnyOrder) {
  rotary::Yarn yarn{3.0, 4096};
  yarn.beta_fast = 1.0;
  yarn.beta_slow = 32.0;
  for (const rotary::Scaling& scaling :
       {rotary::Scaling(yarn), rotary::Scaling(rotary::Llama3{8.0, 4.0, 4.0, 64})}) {
    const auto options = llama(64).scaling(scaling);
    const auto exact =
        rotary_cos_sin(RotaryOptions(options).precision(Precision::Exact), ids({100}));
    EXPECT_TRUE(torch::allclose(exact.cos, rotary_cos_sin(options, ids({100})).cos, 0.0, 1e-4));
  }
}

TEST(Rotary, GradientsOfGivenFrequencies) {
  const auto options = rotary_preset("lightglue", 8);
  const auto positions = torch::rand({5, 2}).requires_grad_();
  const auto f = torch::rand({2}).requires_grad_();
  const auto table = rotary_cos_sin(options, RotaryFrequencies{f}, positions);
  (table.cos + 2 * table.sin).sum().backward();
  const auto own = f.detach().requires_grad_(), at = positions.detach().requires_grad_();
  const auto angles = (at.unsqueeze(-1) * own).flatten(1).repeat_interleave(2, -1);
  (angles.cos() + 2 * angles.sin()).sum().backward();
  EXPECT_TRUE(torch::allclose(f.grad(), own.grad()));
  EXPECT_TRUE(torch::allclose(positions.grad(), at.grad()));
  EXPECT_FALSE(
      rotary_cos_sin(options, RotaryFrequencies{f.detach()}, at.detach()).cos.requires_grad());
}

TEST(Rotary, XposTakesPositionsOfAnyType) {
  const auto options = rotary_preset("xpos", 8);
  const auto whole = torch::arange(100, 128);
  for (const auto type : {torch::kUInt8, torch::kInt8, torch::kInt})
    EXPECT_TRUE(bit_equal(rotary_cos_sin(options, whole.to(type)).scale,
                          rotary_cos_sin(options, whole).scale));
}

}  // namespace
}  // namespace posenc::rotary_test
