// Frequencies by other rules, axes with separate channels, and the patches of a grid.

#include <gtest/gtest.h>
#include <torch/types.h>

#include <numbers>

#include "posenc/positions/rotary/rotary.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "support/compare.h"

namespace posenc {
namespace {

using posenc::testing::bit_equal;
using posenc::testing::message_of;
using rotary::AngleType;
using rotary::Coordinates;
using rotary::CosLayout;
using rotary::CosType;
using rotary::Frequency;
using rotary::Pairing;
using rotary::Planes;

RotaryOptions single(int64_t dim) {
  return RotaryOptions(dim, Pairing::Adjacent)
      .cos_layout(CosLayout::Single)
      .cos_type(CosType::Float32);
}
RotaryOptions axial(int64_t dim) { return single(dim).planes(Planes::Axial); }
std::string refusal(const RotaryOptions& options) {
  return message_of([&] { options.validate(); });
}
torch::Tensor frequencies(const RotaryOptions& options) {
  return rotary_frequencies(options).inv_freq;
}

TEST(RotaryAxial, EveryRuleOfFrequencies) {
  const auto rule = [](Frequency frequency) {
    return frequencies(single(24).base(300.0).frequency(frequency));
  };
  const auto exponents = torch::arange(0, 24, 2, torch::kFloat) / 24;
  const auto steps = torch::arange(0, 1, 2.0 / 24, torch::kFloat);
  const auto line = [](double first, double last) { return torch::linspace(first, last, 12); };
  constexpr double kPi = std::numbers::pi;
  EXPECT_TRUE(bit_equal(rule(Frequency::Power), torch::pow(300.0, exponents).reciprocal()));
  EXPECT_TRUE(bit_equal(rule(Frequency::PowerOfSteps), torch::pow(300.0, steps).reciprocal()));
  EXPECT_TRUE(bit_equal(rule(Frequency::PowerDivisor), torch::pow(300.0, exponents)));
  const auto places = torch::arange(12, torch::kFloat);
  EXPECT_TRUE(bit_equal(rule(Frequency::Exponential), torch::exp(places * -std::log(300.0) / 12)));
  EXPECT_TRUE(bit_equal(rule(Frequency::GrowingPower), torch::pow(300.0, line(0, 1)) * kPi / 2));
  EXPECT_TRUE(bit_equal(rule(Frequency::PixelBands), line(1, 150) * kPi));
  const double doublings = std::log(300.0) / std::log(2.0) - 1;
  EXPECT_TRUE(bit_equal(rule(Frequency::LogPixelBands), torch::pow(2, line(0, doublings)) * kPi));
  EXPECT_EQ(message_of([&] { rule(Frequency::Learned); }),
            "[rotary] Frequency::Learned has no formula: pass the model's frequencies, or its cos "
            "and sin");
}

TEST(RotaryAxial, StepsThatRoundToOneMoreAreLeftOut) {
  EXPECT_EQ(torch::arange(0, 1, 2.0 / 98, torch::kFloat).size(0), 50);
  EXPECT_EQ(frequencies(single(98).frequency(Frequency::PowerOfSteps)).size(0), 49);
}

TEST(RotaryAxial, ADivisorDividesPositions) {
  const auto options = single(20).frequency(Frequency::PowerDivisor).position_scale(3.0);
  const auto positions = torch::arange(30);
  const auto angles = positions.to(torch::kFloat).unsqueeze(-1) * 3.0 / frequencies(options);
  EXPECT_TRUE(bit_equal(rotary_cos_sin(options, positions).sin, angles.sin()));
  const auto divided = single(20).angle_divisor(7.0);
  const auto products = positions.to(torch::kFloat).unsqueeze(-1) * frequencies(divided);
  EXPECT_TRUE(bit_equal(rotary_cos_sin(divided, positions).cos, (products / 7.0).cos()));
}

TEST(RotaryAxial, TheDtypeOfTheAngles) {
  const auto positions = torch::arange(300);
  auto options = single(16).angle_type(AngleType::Float64);
  const auto wide = positions.to(torch::kDouble).unsqueeze(-1) * frequencies(options);
  EXPECT_EQ(wide.scalar_type(), torch::kDouble);
  EXPECT_TRUE(bit_equal(rotary_cos_sin(options, positions).cos, wide.cos().to(torch::kFloat)));
  options.cos_type(CosType::Float64);
  EXPECT_TRUE(bit_equal(rotary_cos_sin(options, positions).cos, wide.cos()));
  options.cos_type(CosType::Input);
  EXPECT_TRUE(bit_equal(rotary_cos_sin(options, positions, torch::kBFloat16).cos,
                        wide.cos().to(torch::kFloat).to(torch::kBFloat16)));
  options.angle_type(AngleType::Float64Frequency);  // wide.slice() is position 1
  const auto rounded = wide.select(0, 1).to(torch::kFloat);
  EXPECT_TRUE(bit_equal(frequencies(options), rounded));
  EXPECT_TRUE(bit_equal(rotary_cos_sin(options, positions).cos,
                        (positions.to(torch::kFloat).unsqueeze(-1) * rounded).cos()));
  options.angle_type(AngleType::Input);
  const auto half = torch::kBFloat16;
  const auto f = torch::pow(10000, torch::arange(8, half) / 8.0).reciprocal();
  const auto narrow = positions.unsqueeze(-1) * f;
  EXPECT_TRUE(bit_equal(rotary_cos_sin(options, positions, half).sin, narrow.sin()));
}

TEST(RotaryAxial, AxesHaveChannelsAndBasesOfTheirOwn) {
  const auto positions = torch::randint(0, 500, {40, 2});
  const auto first = rotary_cos_sin(single(4).base(50.0), positions.select(1, 0));
  const auto second = rotary_cos_sin(single(10), positions.select(1, 1));
  auto options = axial(16).axis_dims({4, 10}).axis_bases({50.0, 10000.0});
  EXPECT_EQ(options.frequency_count(), 7);
  const auto ones = torch::ones({40, 1});
  const auto cos = [&] { return rotary_cos_sin(options, positions).cos; };
  EXPECT_TRUE(bit_equal(cos(), torch::cat({first.cos, second.cos, ones}, -1)));
  EXPECT_TRUE(bit_equal(rotary_cos_sin(options, positions).sin,
                        torch::cat({first.sin, second.sin, ones - 1}, -1)));
  options.rest_first(true);
  EXPECT_TRUE(bit_equal(cos(), torch::cat({ones, first.cos, second.cos}, -1)));
  options.last_plane_first(true);
  EXPECT_TRUE(bit_equal(cos(), torch::cat({ones, second.cos, first.cos}, -1)));
}

TEST(RotaryAxial, AxesTakeTurns) {
  const auto positions = torch::randint(0, 500, {40, 2});
  const auto one = rotary_cos_sin(single(8), positions.select(1, 0)).cos;
  const auto two = rotary_cos_sin(single(8), positions.select(1, 1)).cos;
  auto options = axial(16).planes(Planes::AxialAlternating);
  EXPECT_TRUE(
      bit_equal(rotary_cos_sin(options, positions).cos, torch::stack({one, two}, -1).flatten(-2)));
  options.last_plane_first(true);
  EXPECT_TRUE(
      bit_equal(rotary_cos_sin(options, positions).cos, torch::stack({two, one}, -1).flatten(-2)));
  const auto halves = rotary_cos_sin(axial(16).cos_layout(CosLayout::HalvesPerAxis), positions);
  EXPECT_TRUE(bit_equal(halves.cos, torch::cat({one, one, two, two}, -1)));
}

TEST(RotaryAxial, AnglesOfEachAxisAreDivided) {
  const auto positions = torch::randint(0, 500, {40, 2});
  auto options = axial(16).axis_divisors({3.0, 7.0});
  const auto of = [&](int64_t axis, double divisor) {
    const auto f = frequencies(single(8));
    return positions.select(1, axis).to(torch::kFloat).unsqueeze(-1) * f / divisor;
  };
  const auto angles = torch::cat({of(0, 3.0), of(1, 7.0)}, -1);
  EXPECT_TRUE(bit_equal(rotary_cos_sin(options, positions).sin, angles.sin()));
  options.precision(Precision::Exact);
  EXPECT_LT((rotary_cos_sin(options, positions).cos - angles.cos()).abs().max().item<double>(),
            1e-4);
  EXPECT_EQ(refusal(axial(16).axis_divisors({3.0})),
            "[rotary] axis_divisors must have a number for each plane of Planes::Axial or "
            "AxialAlternating. Got 1");
  EXPECT_EQ(refusal(axial(16).axis_divisors({3.0, 0.0})),
            "[rotary] axis_divisors must be positive and finite. Got 0");
  EXPECT_EQ(refusal(axial(16).axis_divisors({3.0, 1.0}).angle_divisor(2.0)),
            "[rotary] angle_divisor must be 1 beside axis_divisors. Got 2");
}

// The planes of a text model, of which time is at 0.
TEST(RotaryAxial, InterleavedPatchesAreInterleavedPlanesWithoutTime) {
  const auto options = single(22).planes(Planes::AxialInterleaved).sections({0, 3, 20});
  EXPECT_EQ(options.plane_count(), 2);
  const auto positions = torch::randint(0, 500, {40, 2});
  const auto planes = torch::cat({torch::zeros({40, 1}, torch::kLong), positions}, 1).t();
  const auto text = single(22).planes(Planes::Interleaved).sections({0, 3, 20});
  const auto expected = rotary_cos_sin(text, planes.unsqueeze(1));
  const auto got = rotary_cos_sin(options, positions);
  EXPECT_TRUE(bit_equal(got.cos, expected.cos[0]));
  EXPECT_TRUE(bit_equal(got.sin, expected.sin[0]));
  EXPECT_TRUE(bit_equal(rotary_cos_sin(options, positions.to(torch::kFloat)).cos, got.cos));
  EXPECT_EQ(refusal(RotaryOptions(options).sections({3, 3})),
            "[rotary] sections must be three numbers. Got [3, 3]");
}

TEST(RotaryAxial, TheLastCoordinateModulates) {
  const auto positions = torch::rand({3, 20, 2}), stamps = torch::rand({3, 20, 1}) * 90;
  const auto options = axial(24);
  const auto f = frequencies(options);
  const auto angles = torch::cat({positions.select(-1, 0).unsqueeze(-1) * f * stamps,
                                  positions.select(-1, 1).unsqueeze(-1) * f * stamps},
                                 -1);
  const auto table =
      rotary_cos_sin(RotaryOptions(options).modulated(true), torch::cat({positions, stamps}, -1));
  EXPECT_TRUE(bit_equal(table.cos, angles.cos()));
}

TEST(RotaryAxial, GridsByEveryRule) {
  const auto grid = [](rotary::Grid rule, std::vector<int64_t> sizes) {
    return rotary_grid(axial(12).axes(static_cast<int64_t>(sizes.size())).grid(rule), sizes);
  };
  const auto of = [&](Coordinates rule) {  // the first axis of a column
    return grid(rotary::Grid{.coordinates = rule, .reference = {6, 6}}, {4, 1}).select(1, 0);
  };
  const auto integers = [](std::vector<int64_t> v) { return torch::tensor(v); };
  const auto real = [](std::vector<double> v) { return torch::tensor(v, torch::kFloat); };
  EXPECT_TRUE(bit_equal(of(Coordinates::Index), integers({0, 1, 2, 3})));
  EXPECT_TRUE(bit_equal(of(Coordinates::OneBased), integers({1, 2, 3, 4})));
  EXPECT_TRUE(bit_equal(of(Coordinates::Centered), integers({-2, -1, 0, 1})));
  EXPECT_TRUE(bit_equal(of(Coordinates::Midpoints), real({-0.75, -0.25, 0.25, 0.75})));
  EXPECT_TRUE(bit_equal(of(Coordinates::Interval), torch::linspace(-1, 1, 4)));
  EXPECT_TRUE(bit_equal(of(Coordinates::Resized), real({0.0, 1.5, 3.0, 4.5})));
  EXPECT_TRUE(bit_equal(of(Coordinates::Scaled), real({0, 6, 12, 18})));
  EXPECT_TRUE(bit_equal(of(Coordinates::Floored), integers({0, 1, 3, 4})));
  EXPECT_TRUE(bit_equal(grid(rotary::Grid{.offset = 0.5}, {2, 1}).select(1, 0), real({0.5, 1.5})));
  const auto by_hand = integers({0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 1}).view({4, 3});  // t, h, w
  EXPECT_TRUE(bit_equal(grid(rotary::Grid{}, {1, 2, 2}), by_hand));
  const auto from_one = integers({0, 1, 1, 0, 1, 2, 1, 1, 1, 1, 1, 2}).view({4, 3});
  EXPECT_TRUE(
      bit_equal(grid(rotary::Grid{.coordinates = Coordinates::OneBased}, {2, 1, 2}), from_one))
      << "only height and width follow the rule";
  const rotary::Grid turned{
      .coordinates = Coordinates::OneBased, .width_first = true, .zero_tokens = 1};
  EXPECT_TRUE(bit_equal(grid(turned, {1, 2}), integers({1, 1, 2, 1, 0, 0}).view({3, 2})));
}

// The positions of transformers' get_vision_position_ids([[1, 4, 6]], 2), of which the first two
// blocks are printed.
TEST(RotaryAxial, GridsInBlocks) {
  const auto first = [](const RotaryOptions& options, std::vector<int64_t> sizes) {
    return rotary_grid(options, sizes).slice(0, 0, 8);
  };
  const auto h = torch::tensor({0, 0, 1, 1, 0, 0, 1, 1});
  const auto w = torch::tensor({0, 1, 0, 1, 2, 3, 2, 3});
  const auto expected = torch::stack({h, w}, -1);
  EXPECT_TRUE(bit_equal(first(rotary_preset("qwen2_vl_vision", 64), {4, 6}), expected));
  EXPECT_TRUE(bit_equal(first(rotary_preset("inkling2_vision", 64), {4, 6}), expected + 1));
  const auto in_time = torch::stack({torch::ones_like(h), h, w}, -1);
  const auto video = rotary_grid(rotary_preset("minimax_m3_vision", 66), {2, 4, 6});
  EXPECT_TRUE(bit_equal(video.slice(0, 24, 32), in_time));
  const auto muse = first(rotary_preset("muse_vision", 64), {4, 2});  // (width, height), by rows
  const auto by_row =
      torch::stack({1 + torch::arange(8) % 2, 1 + torch::arange(8).div(2, "floor")}, -1);
  EXPECT_TRUE(bit_equal(muse, by_row));
  const auto all = rotary_grid(axial(8).grid(rotary::Grid{.zero_tokens = 1, .merge = 3}), {6, 9});
  EXPECT_EQ(all.size(0), 55);
  EXPECT_TRUE(bit_equal(all[9], torch::tensor({0, 3}))) << "the second block begins";
  EXPECT_TRUE(bit_equal(all[54], torch::tensor({0, 0})));
}

TEST(RotaryAxial, ExactAnglesOfAxesAndCoordinates) {
  const auto positions = torch::rand({30, 2}, torch::kDouble) * 2 - 1;
  auto options = axial(16).axis_dims({6, 10}).axis_bases({100.0, 7.0}).position_scale(6.25);
  options.precision(Precision::Exact).cos_type(CosType::Float32);
  std::vector<torch::Tensor> angles;
  for (const auto& [plane, dim, base] : {std::tuple(0, 6, 100.0), std::tuple(1, 10, 7.0)}) {
    const auto f = torch::pow(base, -torch::arange(0, dim, 2, torch::kDouble) / dim);
    angles.push_back(positions.select(1, plane).unsqueeze(-1) * 6.25 * f);
  }
  const auto expected = torch::cat(angles, -1).cos().to(torch::kFloat);
  EXPECT_TRUE(bit_equal(rotary_cos_sin(options, positions).cos, expected));
  const auto integers = torch::tensor({-3, 5}).unsqueeze(0);
  const auto negative = rotary_cos_sin(axial(8).precision(Precision::Exact), integers);
  const auto positive = rotary_cos_sin(axial(8).precision(Precision::Exact), -integers);
  EXPECT_TRUE(bit_equal(negative.sin, -positive.sin));
}

// LTX-2's autoencoder, for a head of 8.
TEST(RotaryAxial, AnAxisWithoutChannelsRotatesNothing) {
  const auto positions = torch::randint(-50, 50, {2, 5, 3}, torch::kLong);
  for (const auto precision : {Precision::Reference, Precision::Exact}) {
    const auto with = rotary_cos_sin(axial(8).precision(precision).axis_dims({0, 4, 4}), positions);
    const auto without =
        rotary_cos_sin(axial(8).precision(precision).axis_dims({4, 4}), positions.slice(-1, 1));
    EXPECT_TRUE(bit_equal(with.cos, without.cos));
    EXPECT_TRUE(bit_equal(with.sin, without.sin));
  }
}

TEST(RotaryAxial, WrongAxesAreErrors) {
  EXPECT_EQ(refusal(axial(8).axis_dims({0, 0})),
            "[rotary] axis_dims must be even and not negative, and not all 0. Got [0, 0]");
  EXPECT_EQ(refusal(single(8).axis_dims({4, 4})),
            "[rotary] axis_dims belong to Planes::Axial and AxialAlternating. Got [4, 4]");
  EXPECT_EQ(refusal(axial(8).axis_dims({4, 3})),
            "[rotary] axis_dims must be even and not negative, and not all 0. Got [4, 3]");
  EXPECT_EQ(refusal(axial(8).planes(Planes::AxialAlternating).axis_dims({2, 4})),
            "[rotary] axis_dims must be equal for Planes::AxialAlternating. Got [2, 4]");
  EXPECT_EQ(refusal(axial(8).axis_dims({4, 6})),
            "[rotary] axis_dims must not sum to more than dim = 8. Got [4, 6]");
  EXPECT_EQ(refusal(axial(8).rest_first(true)),
            "[rotary] rest_first needs axis_dims, which leave pairs over");
  EXPECT_EQ(refusal(axial(8).axis_bases({1.0})),
            "[rotary] axis_bases must have a number for each plane of Planes::Axial or "
            "AxialAlternating. Got 1");
  EXPECT_EQ(refusal(axial(8).axis_bases({1.0, -1.0})),
            "[rotary] axis_bases must be positive and finite. Got -1");
  EXPECT_EQ(refusal(single(8).last_plane_first(true)),
            "[rotary] last_plane_first belongs to Planes::Axial and AxialAlternating");
  EXPECT_EQ(refusal(single(8).modulated(true)),
            "[rotary] modulated belongs to the axial kinds of planes");
  EXPECT_EQ(refusal(axial(10)),
            "[rotary] dim must be a multiple of two channels for each of the axes. Got 10 for 2");
}

TEST(RotaryAxial, WrongGridsAreErrors) {
  const auto refused = [](rotary::Grid grid, std::vector<int64_t> sizes) {
    return message_of([&] { rotary_grid(axial(8).grid(grid), sizes); });
  };
  EXPECT_EQ(refused({}, {3}), "[rotary] a grid must have a size for each of the 2 planes. Got [3]");
  EXPECT_EQ(refused({}, {3, 0}), "[rotary] the sizes of a grid must be positive. Got [3, 0]");
  EXPECT_EQ(refused(rotary::Grid{.coordinates = Coordinates::Resized}, {3, 3}),
            "[rotary] grid.reference must have a number for each axis of [3, 3]. Got []");
  EXPECT_EQ(refused(rotary::Grid{.reference = {3, 0}}, {3, 3}),
            "[rotary] grid.reference must be positive and finite. Got 0");
  EXPECT_EQ(refused(rotary::Grid{.zero_tokens = -1}, {3, 3}),
            "[rotary] grid.zero_tokens must not be negative. Got -1");
  EXPECT_EQ(refused(rotary::Grid{.merge = -1}, {3, 3}),
            "[rotary] grid.merge must not be negative. Got -1");
  EXPECT_EQ(refused(rotary::Grid{.merge = 2}, {4, 3}),
            "[rotary] height and width of a grid must be multiples of grid.merge = 2. Got [4, 3]");
  EXPECT_EQ(refused(rotary::Grid{.merge = 0}, {4, 4}),
            "[rotary] grid.merge must be set: the model's processor has one for each image "
            "(Video-LLaMA 3: 1 for an image, 2 for a video). Got 0");
  EXPECT_EQ(refused(rotary::Grid{.offset = INFINITY}, {3, 3}),
            "[rotary] grid.offset must be finite. Got inf");
  EXPECT_EQ(refusal(single(8).grid(rotary::Grid{.width_first = true})),
            "[rotary] grid.width_first needs two planes of the axial kinds");
}

TEST(RotaryAxial, WrongFrequenciesAndLayoutsAreErrors) {
  EXPECT_EQ(refusal(axial(8).scaling(rotary::Linear{2.0})),
            "[rotary] patches have rotary::Default frequencies");
  EXPECT_EQ(refusal(single(8).frequency(Frequency::PixelBands).scaling(rotary::Linear{2.0})),
            "[rotary] a scaling takes Frequency::Power");
  EXPECT_EQ(refusal(single(8).frequency(Frequency::PixelBands).precision(Precision::Exact)),
            "[rotary] Precision::Exact needs frequencies 1 / b^(2i / D) and positions that are "
            "not modulated");
  EXPECT_EQ(refusal(single(8).position_scale(0.0)),
            "[rotary] position_scale must be finite and not 0. Got 0");
  EXPECT_EQ(refusal(single(8).angle_divisor(0.0)),
            "[rotary] angle_divisor must be positive and finite. Got 0");
  EXPECT_EQ(refusal(single(8).rotary_heads(-1)),
            "[rotary] rotary_heads must not be negative. Got -1");
  EXPECT_EQ(refusal(single(8).xpos_scale_base(-1.0)),
            "[rotary] xpos_scale_base must be finite and not negative. Got -1");
  EXPECT_EQ(refusal(axial(8).xpos_scale_base(512.0)),
            "[rotary] xpos_scale_base needs Planes::One, and no Arithmetic::Complex or Addcmul");
  EXPECT_EQ(refusal(RotaryOptions(8, Pairing::HalvesPerAxis).planes(Planes::Axial)),
            "[rotary] Pairing::HalvesPerAxis belongs to CosLayout::HalvesPerAxis");
  EXPECT_EQ(refusal(single(8).cos_layout(CosLayout::HalvesPerAxis)),
            "[rotary] CosLayout::HalvesPerAxis belongs to Planes::Axial with equal axes and "
            "Pairing::HalvesPerAxis or Adjacent");
  const auto joined = single(12).pairing(Pairing::HalvesPerHead);
  EXPECT_EQ(refusal(RotaryOptions(joined).joined_heads(4)),
            "[rotary] joined_heads must be positive, and dim = 12 a multiple of two channels for "
            "each. Got 4");
  EXPECT_EQ(refusal(RotaryOptions(joined).cos_layout(CosLayout::Halves)),
            "[rotary] Pairing::HalvesPerHead belongs to CosLayout::Single");
  EXPECT_EQ(refusal(single(12).joined_heads(2)),
            "[rotary] joined_heads belong to Pairing::HalvesPerHead. Got 2");
  EXPECT_EQ(refusal(single(8).arithmetic(rotary::Arithmetic::Complex).cos_type(CosType::Input)),
            "[rotary] Arithmetic::Complex takes CosType::Float32 or Float64");
}

TEST(RotaryAxial, WrongCoordinatesAreErrors) {
  const auto refused = [](const torch::Tensor& positions) {
    return message_of([&] { rotary_cos_sin(axial(8), positions); });
  };
  EXPECT_EQ(refused(torch::zeros({3, 2}, torch::kBFloat16)),
            "[rotary] position_ids must be integers, float32 or float64. Got BFloat16");
  EXPECT_EQ(refused(torch::full({1, 2}, NAN)),
            "[rotary] positions must lie in (-2^31, 2^31). Got nan");
  EXPECT_EQ(refused(torch::full({1, 2}, -3e9)),
            "[rotary] positions must lie in (-2^31, 2^31). Got -3000000000");
  EXPECT_EQ(refused(torch::zeros({3, 3})),
            "[rotary] position_ids must be (N, 2) or (B, N, 2). Got [3, 3]");
}

}  // namespace
}  // namespace posenc
