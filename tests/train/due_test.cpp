// What is due after a step, a report and a checkpoint, is made up for whatever threw; and what is
// not finite replaces no checkpoint.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "posenc/train/fused_adam.h"
#include "support/compare.h"
#include "support/temp_dir.h"
#include "train/small_run.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

void fails(const TrainingProgress&) { throw std::runtime_error("no space left on the device"); }

TEST(Due, AReportThatThrowsCostsNoCheckpoint) {
  const TempDir dir;
  SmallRun run;
  auto trainer = run.trainer(
      TrainerOptions(10).checkpoint(dir / "c").checkpoint_every(4).report_every(4).report(fails));
  for (const int64_t step : {4, 8, 10}) {
    EXPECT_CONTAINS(message_of([&] { trainer.train(); }), "no space left");
    EXPECT_EQ(trainer.step(), step);
    EXPECT_EQ(Trainer::saved_run(dir / "c").step, step);
  }
  EXPECT_TRUE(trainer.train());
}

TEST(Due, AStopThatThrowsCostsNoCheckpoint) {
  const TempDir dir;
  SmallRun run;
  int64_t asked = 0;
  auto trainer = run.trainer(TrainerOptions(5).checkpoint(dir / "c").stop([&]() -> bool {
    if (++asked == 5) throw std::runtime_error("the terminal is gone");
    return false;
  }));
  EXPECT_CONTAINS(message_of([&] { trainer.train(); }), "the terminal is gone");
  EXPECT_EQ(trainer.step(), 5);
  EXPECT_EQ(Trainer::saved_run(dir / "c").step, 5);
}

// A folder in the file's place: the save fails as on a full disk.
TEST(Due, ASaveThatFailedIsMadeUpFor) {
  for (const int64_t every : {0, 3}) {
    const TempDir dir;
    SmallRun run;
    std::vector<int64_t> reports;
    const int64_t blocked = every == 0 ? 7 : 3;
    auto trainer = run.trainer(
        TrainerOptions(7).checkpoint(dir / "c").checkpoint_every(every).report_every(1).report(
            [&](const TrainingProgress& progress) {
              reports.push_back(progress.step);
              if (progress.step == blocked) std::filesystem::create_directory(dir / "c");
            }));
    EXPECT_THROW(trainer.train(), std::exception);
    EXPECT_EQ(trainer.step(), blocked);
    std::filesystem::remove(dir / "c");
    EXPECT_TRUE(trainer.train(blocked));
    EXPECT_EQ(Trainer::saved_run(dir / "c").step, blocked);
    EXPECT_TRUE(trainer.train());
    EXPECT_EQ(Trainer::saved_run(dir / "c").step, 7);
    EXPECT_EQ(reports, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7})) << "each once";
  }
}

// The square root of 0 has a gradient that is not a number.
struct Lost : SmallRun {
  Trainer trainer(const TrainerOptions& options, int64_t lost) {
    return Trainer(
        {*model, &optimizer}, loader,
        [this, lost](const PairBatch& batch) {
          const auto value = loss(batch);
          if (++calls != lost) return value;
          return value + (second->bias * 0).square().sum().sqrt();
        },
        options);
  }
  int64_t calls = 0;
};

TEST(Due, WeightsThatAreNotFiniteReplaceNoCheckpoint) {
  for (const double clip : {0.0, 1.0}) {
    for (const int64_t lost : {10, 20}) {  // also in the last step, which no loss follows
      const TempDir dir;
      Lost run;
      auto trainer = run.trainer(
          TrainerOptions(20).checkpoint(dir / "c").checkpoint_every(5).clip_norm(clip), lost);
      const std::string text = clip > 0 ? "the norm of the gradients must be finite"
                                        : "a checkpoint must be finite. Got NaN or infinity in "
                                          "1.bias after step " +
                                              std::to_string(lost);
      EXPECT_CONTAINS(message_of([&] { trainer.train(); }), "[Trainer] " + text);
      EXPECT_EQ(trainer.step(), lost);
      EXPECT_EQ(Trainer::saved_run(dir / "c").step, lost - 5);
      EXPECT_CONTAINS(message_of([&] { trainer.train(); }), "finite");
      EXPECT_EQ(Trainer::saved_run(dir / "c").step, lost - 5);
      run.calls = 100;
      trainer.resume(dir / "c");
      EXPECT_TRUE(trainer.train());
      EXPECT_EQ(Trainer::saved_run(dir / "c").step, 20);
    }
  }
}

TEST(Due, MomentsThatAreNotFiniteReplaceNoCheckpoint) {
  const TempDir dir;
  SmallRun run;
  FusedAdam adam(run.model->parameters(), 0.0);
  auto trainer = run.trainer(TrainerOptions(6).checkpoint(dir / "c").checkpoint_every(2), adam);
  EXPECT_TRUE(trainer.train(2));
  auto& state = static_cast<torch::optim::AdamParamState&>(
      *adam.state().at(run.second->weight.unsafeGetTensorImpl()));
  state.exp_avg_sq().fill_(std::numeric_limits<float>::infinity());
  EXPECT_CONTAINS(message_of([&] { trainer.train(); }),
                  "Got NaN or infinity in the state exp_avg_sq of 1.weight after step 4");
  EXPECT_EQ(Trainer::saved_run(dir / "c").step, 2);
}

TEST(Due, TheEndOfARunThatIsNotSavedIsFiniteToo) {
  Lost run;
  auto trainer = run.trainer(TrainerOptions(4), 4);
  EXPECT_CONTAINS(message_of([&] { trainer.train(); }),
                  "must be finite. Got NaN or infinity in 1.bias");
}

// The loss is infinite once, and its gradient is right.
TEST(Due, OneInfiniteLossIsOneError) {
  SmallRun run;
  int64_t calls = 0, errors = 0;
  Trainer trainer(
      {*run.model, &run.optimizer}, run.loader,
      [&](const PairBatch& batch) {
        const auto loss = run.loss(batch);
        return ++calls == 3 ? loss + std::numeric_limits<float>::infinity() : loss;
      },
      TrainerOptions(20).report_every(4));
  for (int64_t call = 0; call < 6; ++call) {
    try {
      trainer.train();
    } catch (const c10::ValueError&) {
      ++errors;
    }
  }
  EXPECT_EQ(errors, 1);
  EXPECT_EQ(trainer.step(), 20);
}

TEST(Due, AStopAtTheLastStepIsTheEnd) {
  SmallRun run;
  int64_t asked = 0;
  EXPECT_TRUE(run.trainer(TrainerOptions(4).stop([&] { return ++asked == 4; })).train());
}

}  // namespace
}  // namespace posenc::testing
