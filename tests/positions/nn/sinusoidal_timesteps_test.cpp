#include "posenc/positions/nn/sinusoidal_timesteps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "posenc/positions/functional/sinusoidal_timesteps.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "posenc/weights/load.h"
#include "support/compare.h"
#include "support/devices.h"

namespace posenc::sinusoidal_timesteps_test {
namespace {

using functional::timestep_rows;
using testing::bit_equal;
using testing::OnEachDevice;
using testing::same_sines;
using Options = SinusoidalTimestepsOptions;

class Timesteps : public OnEachDevice {};
POSENC_ON_EACH_DEVICE(Timesteps);

torch::Tensor times() { return torch::tensor({0.0, 0.5, 3.25, -4.0, 7.5, 900.0, 999.0}); }

struct System {
  const char* preset;
  PresetParams params;
};

const System kSystems[] = {
    {"diffusers_timesteps", {}},
    {"diffusers_timesteps", {{"flip_sin_to_cos", 1}, {"downscale_freq_shift", 0}}},
    {"diffusers_timesteps", {{"scale", 1000}, {"max_period", 1000}}},
    {"guided_diffusion", {}},
    {"dit", {{"max_period", 1000}}},
    {"monai_timesteps", {}},
    {"ddpm_lucidrains", {}},
    {"diffusers_1d_sincos", {}},  // in float64
    {"sam2_1d", {}},              // by division
    {"sam_lynn_evans", {}},       // sine and cosine of a pair with different frequencies
};

// The composition on t's device against the recipe on the CPU.
TEST(Timesteps, RowsHaveThePresetsBits) {
  for (const System& system : kSystems) {
    for (const int64_t dim : {8, 18, 20, 34, 68, 320}) {
      const auto options = preset(system.preset, dim, system.params);
      for (const auto dtype : {torch::kFloat, torch::kDouble, torch::kLong, torch::kInt}) {
        const auto t = times().to(dtype);
        EXPECT_TRUE(same_sines(timestep_rows(t, options), sinusoid_rows(options, t)))
            << system.preset << " " << dim << " " << dtype;
      }
    }
  }
  for (const char* name : {"diffusers_timesteps", "guided_diffusion"}) {
    const auto odd = preset(name, 33);  // ends in a zero
    EXPECT_TRUE(same_sines(timestep_rows(times(), odd), sinusoid_rows(odd, times())));
    EXPECT_TRUE(bit_equal(timestep_rows(times(), odd).select(1, 32), torch::zeros({7})));
  }
}

// Recipes with more than sines and cosines of t f are computed on the CPU.
TEST(Timesteps, RowsOfEveryOtherSinusoidToo) {
  const SinusoidOptions others[] = {
      preset("notebook_003", 20), preset("vaswani2017", 20).precision(Precision::Exact),
      preset("positional_encodings_1d", 7), preset("fairseq", 20, {{"padding_idx", 1}})};
  for (const auto& options : others) {
    EXPECT_TRUE(bit_equal(timestep_rows(times(), options), sinusoid_rows(options, times())));
  }
}

// get_timestep_embedding of diffusers, written out, then TimestepEmbedding.
TEST(Timesteps, IsDiffusersOwnComputation) {
  const int64_t dim = 34;
  SinusoidalTimesteps module(dim, 12);
  const auto t = times();
  auto exponent = -std::log(10000.0) * torch::arange(dim / 2, torch::kFloat);
  exponent = exponent / static_cast<double>(dim / 2);
  const auto angle = t.unsqueeze(1) * torch::exp(exponent).unsqueeze(0);
  const auto rows = torch::cat({torch::cos(angle), torch::sin(angle)}, -1);
  EXPECT_TRUE(bit_equal(timestep_rows(t, *module->options.sinusoid()), rows));
  const auto hidden =
      torch::silu(torch::addmm(module->linear_1->bias, rows, module->linear_1->weight.t()));
  const auto out = torch::addmm(module->linear_2->bias, hidden, module->linear_2->weight.t());
  EXPECT_TRUE(testing::within(testing::Op::Linear, module->forward(t).detach(), out.detach()));
  EXPECT_EQ(out.sizes(), (std::vector<int64_t>{7, 12}));
}

TEST(Timesteps, TimeZeroIsSineZeroAndCosineOne) {
  SinusoidalTimesteps module(6, 4);
  const auto row = timestep_rows(torch::zeros({1}), *module->options.sinusoid());
  EXPECT_TRUE(bit_equal(row[0], torch::tensor({1., 1., 1., 0., 0., 0.}, torch::kFloat)));
}

TEST_P(Timesteps, TheKeysMayBeThoseOfASequential) {
  SinusoidalTimesteps plain(Options(20, 12).channels(5));
  SinusoidalTimesteps mlp(Options(20, 12).channels(5).sequential("mlp"));
  EXPECT_EQ(state_dict(*mlp).keys(),
            (std::vector<std::string>{"mlp.0.weight", "mlp.0.bias", "mlp.2.weight", "mlp.2.bias"}));
  StateDict renamed;
  for (size_t i = 0; i < state_dict(*plain).size(); ++i) {
    renamed.insert(state_dict(*mlp).keys()[i], state_dict(*plain)[i].value());
  }
  load_state_dict(*mlp, renamed);
  plain->to(device());
  mlp->to(device());
  const auto t = times().to(device());
  EXPECT_EQ(mlp->forward(t).sizes(), (std::vector<int64_t>{7, 5}));
  EXPECT_TRUE(bit_equal(mlp->forward(t), plain->forward(t)));
  EXPECT_EQ(mlp->forward(times()).device(), device());  // may be on the CPU
  const auto before = mlp->forward(t).detach().clone();
  mlp->reset_parameters();
  EXPECT_FALSE(bit_equal(mlp->forward(t).detach(), before));
}

TEST(Timesteps, ATimeHasAGradient) {
  const auto t = times().requires_grad_(true);
  SinusoidalTimesteps module(20, 8);
  module->forward(t).sum().backward();
  EXPECT_TRUE(t.grad().defined());
  EXPECT_GT(t.grad().abs().sum().item<double>(), 0.0);
  t.mutable_grad().reset();
  timestep_rows(t, SinusoidOptions(2)).select(1, 0).sum().backward();  // of sin t, cos t
  EXPECT_TRUE(bit_equal(t.grad(), t.detach().cos()));
}

// Against autograd of the formula in float64. With the default frequencies a quotient is steep: its
// last angle is t base^(5 / 6).
TEST(Timesteps, AQuotientHasTheGradientOfItsFormula) {
  for (const auto frequency : {sinusoid::Frequency::Exp, sinusoid::Frequency::Power}) {
    const auto options = SinusoidOptions(12)
                             .layout(sinusoid::Layout::Halves)
                             .phase(sinusoid::Phase::Quotient)
                             .frequency(frequency);
    const auto t = torch::tensor({0.5, 3.25, -4.0}).requires_grad_();
    const auto exact = t.detach().to(torch::kDouble).requires_grad_();
    const auto weights = torch::randn({3, 12});
    (timestep_rows(t, options) * weights).sum().backward();
    const double sign = frequency == sinusoid::Frequency::Exp ? -1.0 : 1.0;
    const auto f = torch::pow(10000.0, sign * torch::arange(0, 12, 2, torch::kDouble) / 12);
    const auto angle = exact.unsqueeze(1) / f;
    (torch::cat({angle.sin(), angle.cos()}, 1) * weights).sum().backward();
    EXPECT_TRUE(torch::allclose(t.grad().to(torch::kDouble), exact.grad(), 1e-2, 1e-4));
  }
}

// Not rows without a gradient, with which guidance would train as if t were a constant.
TEST(Timesteps, ASinusoidWithoutAGradientOfTheTimeRefusesToRecordIt) {
  const auto t = times().requires_grad_(true);
  const char* message = "this sinusoid has no gradient of t";
  for (const auto& options :
       {SinusoidOptions(4).precision(Precision::Exact), SinusoidOptions(4).zero_row(0)}) {
    EXPECT_ERROR(timestep_rows(t, options), c10::ValueError, message);
    EXPECT_FALSE(timestep_rows(t.detach(), options).requires_grad());
    const torch::NoGradGuard guard;
    EXPECT_EQ(timestep_rows(t, options).size(0), t.size(0));
  }
  EXPECT_ERROR(sinusoid_rows(SinusoidOptions(4), t), c10::ValueError,
               "[sinusoid_rows] the rows have no gradient of their positions");
}

TEST(TimestepsErrors, NameTheRuleAndTheValue) {
  using Module = SinusoidalTimesteps;
  EXPECT_ERROR(Module(0, 4), c10::ValueError, "d_model must be positive. Got 0");
  EXPECT_ERROR(Module(1, 4), c10::ValueError, "dim must be at least 2. Got 1");
  EXPECT_ERROR(Module(8, 0), c10::ValueError, "hidden must be positive. Got 0");
  EXPECT_ERROR(Module(Options(8, 4).channels(-1)), c10::ValueError,
               "channels must be positive. Got -1");
  EXPECT_ERROR(Module(Options(8, 4).sequential("a.b")), c10::ValueError,
               "sequential must be a name without dots. Got `a.b`");
  EXPECT_ERROR(Module(Options(8, 4).sinusoid(SinusoidOptions(6))), c10::ValueError,
               "the sinusoid must have d_model 8 channels. Got 6");
  Module module(8, 4);
  EXPECT_ERROR(module->forward(torch::zeros({2, 1})), c10::ValueError,
               "[SinusoidalTimesteps] t must be (N). Got [2, 1]");
  EXPECT_ERROR(module->forward(torch::zeros({2}, torch::kBool)), c10::TypeError,
               "t must be integer or real. Got Bool");
  EXPECT_ERROR(module->forward(torch::full({1}, std::numeric_limits<float>::infinity())),
               c10::ValueError, "t must be finite. Got NaN or infinity");
  const auto grid = preset("mae_2d", 8, {{"height", 2}});
  EXPECT_ERROR(timestep_rows(times(), grid), c10::ValueError, "no grid");
}

}  // namespace
}  // namespace posenc::sinusoidal_timesteps_test
