#include "posenc/positions/nn/fourier_features.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <limits>

#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/seed.h"

namespace posenc::fourier_features_test {
namespace {

using testing::bit_equal;
using testing::OnEachDevice;
using testing::same_sines;
using Options = FourierFeaturesOptions;

constexpr double kPi = 3.14159265358979323846;

class Fourier : public OnEachDevice {};
POSENC_ON_EACH_DEVICE(Fourier);

// Embedder of yenchenlin/nerf-pytorch, written out: a list of functions, concatenated.
torch::Tensor plain_composition(const torch::Tensor& x, const Options& o) {
  const int64_t m = o.multires();
  const auto bands = o.log_sampling()
                         ? torch::pow(2.0, torch::linspace(0.0, double(m - 1), m, torch::kFloat))
                         : torch::linspace(1.0, std::pow(2.0, double(m - 1)), m, torch::kFloat);
  std::vector<torch::Tensor> parts;
  if (o.include_input()) parts.push_back(x);
  for (int64_t i = 0; i < m; ++i) {
    const auto angle = x * bands[i].to(x.device());
    parts.push_back(torch::sin(angle * o.angle_scale()));
    parts.push_back(torch::cos(angle * o.angle_scale()));
  }
  return torch::cat(parts, -1);
}

TEST_P(Fourier, IsNerfsOwnComputation) {
  torch::manual_seed(testing::seed(0));
  const Options variants[] = {Options(3, 10), Options(3, 4), Options(2, 1).include_input(false),
                              Options(3, 6).log_sampling(false),
                              Options(1, 5).angle_scale(kPi).include_input(false)};
  for (const auto& options : variants) {
    FourierFeatures module(options);
    for (const auto& shape : std::vector<std::vector<int64_t>>{{7}, {2, 5}, {0}, {}}) {
      auto sizes = shape;
      sizes.push_back(options.channels());
      const auto x = torch::randn(sizes).to(device());
      const auto out = module->forward(x);
      EXPECT_TRUE(same_sines(out, plain_composition(x, options)));
      EXPECT_EQ(out.size(-1), options.out_channels());
    }
  }
}

// Point k of the preset is (p, p / 2, -p).
TEST(Fourier, HasThePresetsBits) {
  for (const int64_t multires : {1, 4, 10}) {
    const auto p = torch::arange(-100, 100, torch::kFloat) * 0.0078125;
    const auto points = torch::stack({p, p * 0.5, -p}, -1);
    const auto options = preset("nerf", 3 + 6 * multires, {{"multires", multires}});
    EXPECT_TRUE(
        same_sines(FourierFeatures(3, multires)->forward(points), sinusoid_rows(options, p)));
  }
  // Perceiver: linear frequencies, times pi, and the sines before the cosines.
  const auto p = torch::arange(-100, 100, torch::kFloat) * 0.0078125;
  const auto options = preset("perceiver_fourier", 13, {{"num_bands", 6}, {"max_resolution", 64}});
  const auto linear =
      FourierFeatures(Options(1, 6).log_sampling(false).angle_scale(kPi))->forward(p.unsqueeze(-1));
  const auto order = torch::tensor({0, 1, 3, 5, 7, 9, 11, 2, 4, 6, 8, 10, 12});
  EXPECT_TRUE(same_sines(linear.index_select(1, order), sinusoid_rows(options, p)));
}

TEST(Fourier, TheOriginGivesZerosAndOnes) {
  const auto out = FourierFeatures(2, 2)->forward(torch::zeros({2}));
  EXPECT_TRUE(
      bit_equal(out, torch::tensor({0., 0., 0., 0., 1., 1., 0., 0., 1., 1.}, torch::kFloat)));
}

TEST_P(Fourier, HalfPrecisionIsRoundedOnce) {
  FourierFeatures module(3, 10);
  const auto x = torch::randn({4, 3}).to(device());
  for (const auto dtype : {torch::kHalf, torch::kBFloat16}) {
    const auto low = x.to(dtype);
    EXPECT_TRUE(bit_equal(module->forward(low), module->forward(low.to(torch::kFloat)).to(dtype)));
  }
  EXPECT_EQ(module->forward(x.to(torch::kDouble)).scalar_type(), torch::kDouble);
}

TEST(Fourier, HasItsGradient) {
  const auto x = torch::randn({3}, torch::kDouble).requires_grad_(true);
  const auto out = FourierFeatures(Options(3, 2).include_input(false))->forward(x);
  out.slice(0, 6, 9).sum().backward();  // sin(2 x)
  EXPECT_TRUE(bit_equal(x.grad(), (2 * x).cos().detach() * 2));
}

TEST(FourierErrors, NameTheRuleAndTheValue) {
  EXPECT_ERROR(FourierFeatures(0, 4), c10::ValueError,
               "[FourierFeatures] channels must be positive. Got 0");
  EXPECT_ERROR(FourierFeatures(3, 0), c10::ValueError, "multires must lie in [1, 128]. Got 0");
  EXPECT_ERROR(FourierFeatures(3, 129), c10::ValueError, "multires must lie in [1, 128]. Got 129");
  EXPECT_ERROR(FourierFeatures(Options(3, 4).angle_scale(std::numeric_limits<double>::infinity())),
               c10::ValueError, "angle_scale must be finite. Got inf");
  FourierFeatures module(3, 4);
  EXPECT_ERROR(module->forward(torch::zeros({4, 2})), c10::ValueError,
               "x must have 3 coordinates in its last axis. Got [4, 2]");
  EXPECT_ERROR(module->forward(torch::tensor(1.0)), c10::ValueError, "x must have 3 coordinates");
  EXPECT_ERROR(module->forward(torch::zeros({3}, torch::kLong)), c10::TypeError,
               "x must be real-valued. Got Long");
}

}  // namespace
}  // namespace posenc::fourier_features_test
