#include "posenc/positions/nn/sine_position_embedding_2d.h"

#include <gtest/gtest.h>

#include <limits>

#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/seed.h"

namespace posenc::sine_position_embedding_2d_test {
namespace {

using testing::bit_equal;
using testing::OnEachDevice;
using Options = SinePositionEmbedding2dOptions;

constexpr double kTwoPi = 6.283185307179586;

struct System {
  const char* preset;
  PresetParams params;
  Options options;  // the test sets d_model
};

const System kSystems[] = {
    {"detr_2d", {{"normalize", 0}}, Options(4).normalize(false)},
    {"detr_2d", {{"normalize", 1}}, Options(4)},
    {"deformable_detr_2d", {}, Options(4).offset(-0.5)},
    {"dab_detr_2d", {}, Options(4).temperature(20).frequency(sinusoid::Frequency::PowerOfProduct)},
};

// The preset's rows of cells as an image: (H W, D) -> (D, H, W).
torch::Tensor image_of(const System& system, int64_t dim, int64_t height, int64_t width) {
  PresetParams params = system.params;
  params.emplace("height", height);
  params.emplace("width", width);
  return sinusoid_table(preset(system.preset, dim, params), height * width)
      .t()
      .reshape({dim, height, width});
}

torch::Tensor padded_mask() {  // two 5 x 7 images: the first 3 x 4, the second full
  auto mask = torch::zeros({2, 5, 7}, torch::kBool);
  mask[0].slice(0, 3).fill_(true);
  mask[0].slice(1, 4).fill_(true);
  return mask;
}

// PositionEmbeddingSine.forward of facebookresearch/detr, written out, with mmdet's offset.
torch::Tensor plain_composition(const torch::Tensor& mask, const Options& o) {
  const int64_t features = o.d_model() / 2;
  const auto not_mask = ~mask;
  auto y = not_mask.cumsum(1, torch::kFloat), x = not_mask.cumsum(2, torch::kFloat);
  if (o.normalize()) {
    y = (y + o.offset()) / (y.slice(1, -1) + o.eps()) * o.scale();
    x = (x + o.offset()) / (x.slice(2, -1) + o.eps()) * o.scale();
  }
  auto dim_t = torch::arange(features, torch::kFloat);
  const auto pairs = dim_t.div(2, "floor");
  dim_t = o.frequency() == sinusoid::Frequency::Power
              ? torch::pow(o.temperature(), 2 * pairs / features)
              : torch::pow(o.temperature(), pairs * (2.0 / static_cast<double>(features)));
  const auto interleaved = [&](const torch::Tensor& coordinate) {
    const auto angle = coordinate.unsqueeze(-1) / dim_t;
    return torch::stack(
               {angle.slice(3, 0, features, 2).sin(), angle.slice(3, 1, features, 2).cos()}, 4)
        .flatten(3);
  };
  return torch::cat({interleaved(y), interleaved(x)}, 3).permute({0, 3, 1, 2});
}

class Sine2d : public OnEachDevice {};
POSENC_ON_EACH_DEVICE(Sine2d);

TEST(Sine2d, WithoutPaddingHasThePresetsBits) {
  const std::pair<int64_t, int64_t> sizes[] = {{1, 1}, {3, 5}, {14, 14}, {33, 31}};
  for (System system : kSystems) {
    for (const int64_t dim : {4, 20, 36, 68, 256}) {
      SinePositionEmbedding2d module(system.options.d_model(dim));
      for (const auto& [height, width] : sizes) {
        SCOPED_TRACE(c10::str(system.preset, " ", dim, " ", height, " ", width));
        const auto image = image_of(system, dim, height, width);
        const auto mask = torch::zeros({2, height, width}, torch::kBool);
        const auto out = module->forward(mask);
        EXPECT_EQ(out.sizes(), (std::vector<int64_t>{2, dim, height, width}));
        EXPECT_TRUE(bit_equal(out[0], image));
        EXPECT_TRUE(bit_equal(out[1], image));
        EXPECT_TRUE(bit_equal(module->forward(torch::zeros({2, 3, height, width})), out));
      }
    }
  }
}

TEST(Sine2d, WithPaddingIsTheSystemsOwnComputation) {
  torch::manual_seed(testing::seed(0));
  const torch::Tensor masks[] = {padded_mask(), torch::rand({3, 6, 5}) < 0.4,
                                 torch::ones({1, 2, 3}, torch::kBool)};
  for (System system : kSystems) {
    for (const int64_t dim : {4, 36}) {
      const auto options = system.options.d_model(dim);
      for (const auto& mask : masks) {
        EXPECT_TRUE(bit_equal(SinePositionEmbedding2d(options)->forward(mask),
                              plain_composition(mask, options)))
            << system.preset << " " << dim;
      }
    }
  }
}

TEST(Sine2d, ThePartThatIsNotPaddingIsASmallerImage) {
  for (System system : kSystems) {
    const auto out = SinePositionEmbedding2d(system.options.d_model(20))->forward(padded_mask());
    EXPECT_TRUE(bit_equal(out[0].slice(1, 0, 3).slice(2, 0, 4), image_of(system, 20, 3, 4)));
    EXPECT_TRUE(bit_equal(out[1], image_of(system, 20, 5, 7)));
  }
}

// Computed by hand: in a column of only padding, x and y are 0, so the sine is 0 and the cosine 1.
TEST(Sine2d, PaddingAtTheTopLeftCountsFromZero) {
  const auto mask = torch::tensor({{{true, true}, {true, false}}});
  const auto out = SinePositionEmbedding2d(4)->forward(mask);
  const auto zero_one = torch::tensor({0., 1., 0., 1.}, torch::kFloat);
  EXPECT_TRUE(bit_equal(out[0].select(1, 0).select(1, 0), zero_one));
  EXPECT_TRUE(bit_equal(out[0].select(1, 0).select(1, 1), zero_one));
  const auto one = torch::ones({1}) / (torch::ones({1}) + 1e-6) * kTwoPi;
  const auto last = torch::cat({one.sin(), one.cos(), one.sin(), one.cos()});
  EXPECT_TRUE(bit_equal(out[0].select(1, 1).select(1, 1), last));
}

TEST_P(Sine2d, StaysOnTheInputsDeviceInTheImagesType) {
  SinePositionEmbedding2d module(20);
  const auto out = module->forward(padded_mask().to(device()));
  EXPECT_EQ(out.device(), device());
  EXPECT_EQ(out.scalar_type(), torch::kFloat);
  const auto image = torch::zeros({2, 3, 5, 7}).to(device());
  const auto encoding = module->forward(image);
  for (const auto dtype : {torch::kHalf, torch::kBFloat16, torch::kDouble}) {
    EXPECT_TRUE(bit_equal(module->forward(image.to(dtype)), encoding.to(dtype)));
  }
  EXPECT_EQ(module->forward(torch::zeros({0, 5, 7}, torch::kBool)).sizes(),
            (std::vector<int64_t>{0, 20, 5, 7}));
}

TEST(Sine2dErrors, NameTheRuleAndTheValue) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  using Module = SinePositionEmbedding2d;
  EXPECT_ERROR(
      Module(6), c10::ValueError,
      "[SinePositionEmbedding2d] d_model must be a positive multiple of 4: sine and cosine "
      "of y and of x. Got 6");
  EXPECT_ERROR(Module(0), c10::ValueError, "d_model must be a positive multiple of 4");
  EXPECT_ERROR(Module(Options(8).temperature(0)), c10::ValueError,
               "temperature must be positive and finite. Got 0");
  EXPECT_ERROR(Module(Options(8).eps(-1)), c10::ValueError, "eps must be positive and finite");
  EXPECT_ERROR(Module(Options(8).scale(nan)), c10::ValueError, "scale and offset must be finite");
  EXPECT_ERROR(Module(Options(8).frequency(sinusoid::Frequency::Exp)), c10::ValueError,
               "frequency must be Power or PowerOfProduct");
  Module module(8);
  EXPECT_ERROR(module->forward(torch::zeros({2, 3}, torch::kBool)), c10::ValueError,
               "the mask must be (B, H, W), or an image without padding (B, C, H, W). Got [2, 3]");
  EXPECT_ERROR(module->forward(torch::zeros({1, 2, 3})), c10::TypeError,
               "the mask must be bool, true for padding. Got Float");
  EXPECT_ERROR(module->forward(torch::zeros({1, 1, 2, 3}, torch::kBool)), c10::TypeError,
               "the image must be real-valued. Got Bool");
  EXPECT_ERROR(module->forward(torch::zeros({1, 0, 3}, torch::kBool)), c10::ValueError,
               "height and width must be positive. Got [1, 0, 3]");
}

}  // namespace
}  // namespace posenc::sine_position_embedding_2d_test
