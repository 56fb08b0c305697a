// What a callback changes is put back, or is the run's: modes, generators, frozen parts, rates.
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>

#include <vector>

#include "support/compare.h"
#include "support/temp_dir.h"
#include "train/small_run.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

struct WithDropout : SmallRun {
  WithDropout() { model->push_back(torch::nn::Dropout(0.5)); }
};

// A validation that leaves the model in eval mode.
TEST(Callbacks, LeaveTheModesAsTheyWere) {
  for (const bool in_stop : {false, true}) {
    WithDropout run;
    int64_t trained = 0;
    run.on_loss = [&] { trained += run.model[2]->is_training() ? 1 : 0; };
    TrainerOptions options(20);
    if (in_stop) {
      options.stop([&] { return run.model->eval(), false; });
    } else {
      options.report_every(1).report([&](const TrainingProgress&) { run.model->eval(); });
    }
    EXPECT_TRUE(run.trainer(options).train());
    EXPECT_EQ(trained, 20);
    EXPECT_TRUE(run.model->is_training());
  }
}

TEST(Callbacks, ThatThrowLeaveTheModesToo) {
  WithDropout run;
  auto trainer = run.trainer(TrainerOptions(4).report_every(2).report([&](const TrainingProgress&) {
    run.model->eval();
    throw std::runtime_error("no such file");
  }));
  EXPECT_THROW(trainer.train(), std::runtime_error);
  EXPECT_TRUE(run.model->is_training());
}

TEST(Callbacks, APartInEvalModeStaysInIt) {
  SmallRun run;
  torch::nn::BatchNorm1d norm(2);
  run.model->push_back(norm);
  FusedSGD optimizer(run.model->parameters(), 0.01);
  norm->eval();
  const auto before = norm->running_mean.clone();
  auto trainer = run.trainer(
      TrainerOptions(6).report([&](const TrainingProgress&) { run.model->train(); }), optimizer);
  EXPECT_TRUE(trainer.train(3));
  run.model->eval();  // an evaluation between two calls
  EXPECT_TRUE(trainer.train());
  EXPECT_TRUE(bit_equal(norm->running_mean, before));
  EXPECT_FALSE(norm->is_training());
  EXPECT_TRUE(run.first->is_training());
}

TEST(Callbacks, AModelInEvalModeIsTrainedInTrainMode) {
  WithDropout run;
  run.model->eval();
  EXPECT_TRUE(run.trainer(TrainerOptions(1)).train());
  EXPECT_TRUE(run.model[2]->is_training());
}

// A run that is stopped has one report more than one that is not.
TEST(Callbacks, NumbersDrawnInAReportAreNotTheRuns) {
  const TempDir dir;
  const auto options = [&] {
    return TrainerOptions(20).report_every(5).report(
        [](const TrainingProgress&) { torch::rand({3}); });
  };
  WithDropout whole;
  torch::manual_seed(3);
  whole.trainer(options()).train();
  WithDropout stopped;
  torch::manual_seed(3);
  int64_t asked = 0;
  stopped.trainer(options().checkpoint(dir / "c").stop([&] { return ++asked == 7; })).train();
  WithDropout resumed;
  torch::manual_seed(99);
  auto trainer = resumed.trainer(options());
  trainer.resume(dir / "c");
  EXPECT_TRUE(trainer.train());
  EXPECT_TRUE(bit_equal(resumed.weights(), whole.weights()));
}

// The rate of a plateau, and a part that is frozen, are the run's from then on.
TEST(Callbacks, RatesAndFrozenPartsAreKept) {
  SmallRun run;
  auto trainer = run.trainer(TrainerOptions(6).report_every(3).report([&](const TrainingProgress&) {
    run.optimizer.set_named_options(0, {{"lr", 0.0}});
    run.first->weight.set_requires_grad(false);
  }));
  EXPECT_TRUE(trainer.train(3));
  const auto before = run.weights();
  EXPECT_TRUE(trainer.train());
  EXPECT_TRUE(bit_equal(run.weights(), before));
  EXPECT_FALSE(run.first->weight.requires_grad());
}

// A group that is added in a report has to be the module's as well.
TEST(Callbacks, AParameterAddedInAReportIsLookedAt) {
  SmallRun run;
  torch::nn::Linear head(2, 2);
  auto trainer = run.trainer(TrainerOptions(6).report_every(3).report(
      [&](const TrainingProgress&) { run.optimizer.add_param_group(head->parameters()); }));
  EXPECT_CONTAINS(message_of([&] { trainer.train(); }),
                  "Got parameter 0 of group 1, [2, 2], which");
  EXPECT_EQ(trainer.step(), 3);
}

}  // namespace
}  // namespace posenc::testing
