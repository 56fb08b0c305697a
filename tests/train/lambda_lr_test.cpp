#include "posenc/train/lambda_lr.h"

#include <gtest/gtest.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <cmath>

#include "posenc/train/fused_adam.h"
#include "posenc/train/sparse_adam.h"
#include "support/compare.h"

namespace posenc::testing::lambda_lr_test {
namespace {

std::vector<torch::Tensor> parameters() { return {torch::zeros({2}, torch::requires_grad())}; }

template <typename Optimizer, typename Options>
void expect_followed() {
  SCOPED_TRACE(typeid(Optimizer).name());
  Optimizer optimizer(parameters(), Options(0.5));
  LambdaLR schedule(optimizer, [](int64_t step) { return static_cast<double>(step + 1); });
  for (int64_t step = 0; step < 3; ++step) {
    EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), 0.5 * static_cast<double>(step + 1));
    schedule.step();
  }
}

TEST(LambdaLR, SetsTheRateOfAnyOptimizer) {
  expect_followed<FusedAdam, FusedAdamOptions>();
  expect_followed<FusedAdamW, FusedAdamWOptions>();
  expect_followed<SparseAdam, SparseAdamOptions>();
  expect_followed<torch::optim::Adam, torch::optim::AdamOptions>();
  expect_followed<torch::optim::Adagrad, torch::optim::AdagradOptions>();
}

TEST(WarmupFactor, RisesToItsTopAndFallsWithTheRoot) {
  const auto factor = warmup_factor(512, 4000);
  EXPECT_DOUBLE_EQ(factor(3999), 1.0 / std::sqrt(512.0 * 4000.0));
  for (const int64_t step : {0, 100, 3998}) EXPECT_LT(factor(step), factor(step + 1));
  for (const int64_t step : {3999, 100000}) EXPECT_GT(factor(step), factor(step + 1));
  EXPECT_DOUBLE_EQ(factor(15999), factor(3999) / 2.0);
}

TEST(CosineFactor, EndsAtZero) {
  const auto factor = cosine_factor(10, 100);
  EXPECT_DOUBLE_EQ(factor(4), 0.5);
  EXPECT_DOUBLE_EQ(factor(9), 1.0);
  EXPECT_DOUBLE_EQ(factor(10), 1.0);
  EXPECT_DOUBLE_EQ(factor(55), 0.5);
  EXPECT_GT(factor(99), 0.0);
  EXPECT_EQ(factor(100), 0.0);
  for (const int64_t past : {101, 150, 1000}) EXPECT_EQ(factor(past), 0.0) << past;
  EXPECT_DOUBLE_EQ(cosine_factor(0, 4)(2), 0.5);
}

// For example, from a decay that continues past its end: the step would ascend the gradient.
TEST(LambdaLR, RefusesANegativeFactor) {
  const auto p = torch::zeros({2}).set_requires_grad(true);
  FusedAdam optimizer({p}, 0.5);
  LambdaLR schedule(optimizer, [](int64_t step) { return 1.0 - 0.5 * static_cast<double>(step); });
  schedule.step(), schedule.step();
  EXPECT_EQ(optimizer.named_options(0).at("lr"), 0.0);
  EXPECT_ERROR(schedule.step(), c10::ValueError,
               "[LambdaLR] the factor must be finite and not negative. Got -0.5 for step 3");
  EXPECT_EQ(optimizer.named_options(0).at("lr"), 0.0);
  EXPECT_ERROR(LambdaLR(optimizer, [](int64_t) { return std::nan(""); }), c10::ValueError,
               "must be finite");
  EXPECT_ERROR(LambdaLR(optimizer, [](int64_t) { return INFINITY; }), c10::ValueError,
               "must be finite");
}

TEST(LearningRateFactors, SayWhatIsWrong) {
  EXPECT_ERROR(warmup_factor(0, 4), c10::ValueError,
               "[warmup_factor] d_model must be positive. Got 0");
  EXPECT_ERROR(warmup_factor(8, -1), c10::ValueError, "warmup must be positive. Got -1");
  EXPECT_ERROR(cosine_factor(5, 5), c10::ValueError,
               "[cosine_factor] warmup must lie in [0, steps). Got 5 and steps 5");
  EXPECT_ERROR(cosine_factor(-1, 5), c10::ValueError, "Got -1");
}

}  // namespace
}  // namespace posenc::testing::lambda_lr_test
