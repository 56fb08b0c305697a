// The training loop on a tiny Transformer: reports, checkpoints, stops, and runs that resume as if
// they had never stopped.
#include "posenc/train/trainer.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "posenc/train/fused_adam.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/lambda_lr.h"
#include "posenc/train/token_cross_entropy.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"
#include "support/seed.h"
#include "transformer/tiny.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

constexpr int64_t kSteps = 30;

std::vector<TokenPair> copies() {
  std::vector<TokenPair> pairs;
  for (int64_t i = 0; i < 40; ++i) {
    TokenPair pair{{3 + i % 6}, {1, 3 + i % 6}};
    if (i % 3 == 0) pair.src.push_back(4), pair.tgt.push_back(4);
    pair.tgt.push_back(2);
    pairs.push_back(pair);
  }
  return pairs;
}

struct Training {
  explicit Training(TrainerOptions options = TrainerOptions(kSteps), uint64_t seed = 1)
      : trainer({*model, &optimizer, &schedule}, loader, loss(), options.clip_norm(1.0)) {
    torch::manual_seed(testing::seed(seed));
    model->reset_parameters();
  }

  Trainer::Loss loss() {
    return [this](const PairBatch& batch) {
      const auto logits =
          model->forward(batch.src, batch.tgt_input(), batch.src_mask(), AttentionMask::causal());
      return functional::token_cross_entropy(
          logits, batch.tgt_labels(), functional::TokenCrossEntropyFuncOptions().ignore_index(0));
    };
  }

  Transformer model{
      tiny(Tying::ThreeWay).dropout(0.2).embedding_init(EmbeddingInit::StandardNormal)};
  FusedAdam optimizer{model->parameters(), 1.0};
  LambdaLR schedule{optimizer, warmup_factor(8, 10)};
  PairLoader loader{copies(), PairLoaderOptions().max_rows(8).seed(5)};
  Trainer trainer;
};

TEST(Trainer, Learns) {
  std::vector<TrainingProgress> reports;
  Training run(TrainerOptions(200).report_every(20).report(
      [&](const TrainingProgress& progress) { reports.push_back(progress); }));
  EXPECT_TRUE(run.trainer.train());
  ASSERT_EQ(reports.size(), 10u);
  EXPECT_LT(reports.back().loss, 0.8 * reports.front().loss)  // 0.6 to 0.72 for most seeds
      << "after " << reports.back().step << " steps";
  EXPECT_EQ(reports[1].step, 40);
  EXPECT_EQ(reports[1].steps, 200);
  EXPECT_GT(reports[1].epoch, 0);
  EXPECT_GT(reports[1].tokens_per_second, 0.0);
  EXPECT_GT(reports[1].seconds_left, 0.0);
  EXPECT_EQ(reports.back().seconds_left, 0.0);
  EXPECT_GT(run.trainer.seconds(), 0.0);
}

TEST(Trainer, ReportsTheMeanLossOfTheStepsSinceTheLastReport) {
  std::vector<double> each, means;
  Training one(TrainerOptions(9).report_every(1).report(
      [&](const TrainingProgress& progress) { each.push_back(progress.loss); }));
  one.trainer.train();
  Training four(TrainerOptions(9).report_every(4).report(
      [&](const TrainingProgress& progress) { means.push_back(progress.loss); }));
  four.trainer.train();
  ASSERT_EQ(each.size(), 9u);
  ASSERT_EQ(means.size(), 3u) << "and after the last step";
  EXPECT_NEAR(means[1], (each[4] + each[5] + each[6] + each[7]) / 4, 1e-5);
  EXPECT_NEAR(means[2], each[8], 1e-5);
}

// A sum of losses of 70 stops growing at 16,384 in bfloat16, and is inf after 936 of them in
// float16.
TEST(Trainer, SumsTheLossesOfHalfTypesInFloat64) {
  for (const auto dtype : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    torch::nn::Linear model(1, 1);
    model->to(dtype);
    FusedSGD optimizer(model->parameters(), 0.0);
    PairLoader loader(copies());
    double mean = 0.0;
    const auto loss = [&](const PairBatch&) { return model->weight.sum() * 0 + 70; };
    Trainer trainer({*model, &optimizer}, loader, loss,
                    TrainerOptions(1000).report_every(1000).report(
                        [&](const TrainingProgress& progress) { mean = progress.loss; }));
    EXPECT_TRUE(trainer.train());
    EXPECT_EQ(mean, 70.0) << dtype;
  }
}

// After any exception, the batch of the failed step comes next, and the report's count is
// unchanged.
TEST(Trainer, AnExceptionLosesNoBatch) {
  std::vector<torch::Tensor> all, some;
  const auto record = [](std::vector<torch::Tensor>& seen, int64_t fail) {
    torch::nn::Linear model(1, 1);
    FusedSGD optimizer(model->parameters(), 0.0);
    PairLoader loader(copies(), PairLoaderOptions().max_rows(8).seed(5));
    int64_t calls = 0;
    std::vector<int64_t> reported;
    Trainer trainer(
        {*model, &optimizer}, loader,
        [&](const PairBatch& batch) {
          TORCH_CHECK(++calls % 3 != fail, "out of memory");
          seen.push_back(batch.src);
          return model->weight.sum();
        },
        TrainerOptions(12).report_every(6).report([&](const TrainingProgress& at) {
          reported.push_back(at.step);
          TORCH_CHECK(fail < 0, "a report that throws");
        }));
    while (trainer.step() < 12) {
      try {
        trainer.train();
      } catch (const c10::Error&) {
        EXPECT_EQ(seen.size(), static_cast<size_t>(trainer.step()));
      }
    }
    EXPECT_EQ(reported, (std::vector<int64_t>{6, 12}));
    EXPECT_EQ(loader.epoch(), 2);
  };
  record(all, -1);
  record(some, 1);
  ASSERT_EQ(all.size(), some.size());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(bit_equal(all[i], some[i])) << i;
}

TEST(Trainer, InPiecesIsTheSameRun) {
  Training whole;
  whole.trainer.train();
  Training pieces;  // created afterwards: both draw from one generator
  for (const int64_t until : {1, 7, 7, 22, 100}) {
    EXPECT_TRUE(pieces.trainer.train(until));
    pieces.model->eval();  // like an evaluation in between
  }
  EXPECT_EQ(pieces.trainer.step(), kSteps);
  EXPECT_TRUE(all_bits(*pieces.model) == all_bits(*whole.model));
}

TEST(Trainer, StoppedAndResumedIsTheRunThatNeverWas) {
  const TempDir dir;
  Training whole;
  whole.trainer.train();

  int64_t asked = 0;
  Training stopped(
      TrainerOptions(kSteps).checkpoint(dir / "c").stop([&] { return ++asked == 13; }));
  stopped.trainer.numbers["best"] = 0.25;
  EXPECT_FALSE(stopped.trainer.train());
  EXPECT_EQ(stopped.trainer.step(), 13);
  EXPECT_EQ(Trainer::saved_run(dir / "c").step, 13);
  EXPECT_EQ(Trainer::saved_run(dir / "c").numbers, (CheckpointScalars{{"best", 0.25}}));

  Training resumed(TrainerOptions(kSteps).checkpoint(dir / "c").overwrite(true), /*seed=*/99);
  resumed.trainer.train(2);  // leaves state to be discarded, including an open report
  resumed.trainer.resume(dir / "c");
  EXPECT_EQ(resumed.trainer.step(), 13);
  EXPECT_GE(resumed.trainer.seconds(), stopped.trainer.seconds());
  EXPECT_EQ(resumed.trainer.numbers, (CheckpointScalars{{"best", 0.25}}));
  EXPECT_TRUE(resumed.trainer.train());
  EXPECT_TRUE(all_bits(*resumed.model) == all_bits(*whole.model));
  EXPECT_EQ(Trainer::saved_run(dir / "c").step, kSteps) << "the end is saved too";
}

// Resuming at an earlier step discards the losses, clock and position of the run that was open.
TEST(Trainer, AResumeForgetsTheRunThatWasOpen) {
  const TempDir dir, kept;
  std::vector<TrainingProgress> reports;
  const auto options = [&] {
    return TrainerOptions(kSteps).checkpoint(dir / "c").checkpoint_every(12).report_every(9).report(
        [&](const TrainingProgress& progress) { reports.push_back(progress); });
  };
  Training run(options());
  for (const int64_t step : {12, 24}) {
    run.trainer.train(step);
    std::filesystem::copy(dir / "c", kept / std::to_string(step));
  }
  const auto reported_from_12 = [&](Training& resumed) {
    resumed.trainer.resume(kept / "12");
    reports.clear();
    EXPECT_TRUE(resumed.trainer.train());
    return reports;
  };
  Training fresh(options()), used(options());
  const auto expected = reported_from_12(fresh);
  used.trainer.resume(kept / "24");
  used.trainer.train(25);
  const auto found = reported_from_12(used);
  ASSERT_EQ(expected.size(), 3u);
  ASSERT_EQ(found.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found[i].step, expected[i].step);
    EXPECT_EQ(found[i].loss, expected[i].loss);
    EXPECT_GE(found[i].seconds_left, 0.0);
  }
}

TEST(Trainer, SavesEverySoOften) {
  const TempDir dir;
  Training run(TrainerOptions(kSteps).checkpoint(dir / "c").checkpoint_every(10));
  run.trainer.train(9);
  EXPECT_EQ(dir.entries(), 0u);
  run.trainer.train(29);
  EXPECT_EQ(Trainer::saved_run(dir / "c").step, 20);
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(Trainer, OtherDataIsRefusedBeforeAnythingChanges) {
  const TempDir dir;
  Training run(TrainerOptions(kSteps).checkpoint(dir / "c"));
  run.trainer.train();
  auto pairs = copies();
  pairs.pop_back();
  PairLoader loader(pairs, PairLoaderOptions().max_rows(8).seed(5));
  Training other;
  Trainer trainer({*other.model, &other.optimizer, &other.schedule}, loader, other.loss(),
                  TrainerOptions(kSteps));
  const auto before = all_bits(*other.model);
  EXPECT_ERROR(trainer.resume(dir / "c"), c10::ValueError, "must be of the same pairs");
  EXPECT_TRUE(all_bits(*other.model) == before);

  Trainer bare({*other.model, &other.optimizer}, other.loader, other.loss(),
               TrainerOptions(kSteps).clip_norm(1.0));  // the file has a scheduler
  EXPECT_EQ(error_of([&] { bare.resume(dir / "c"); }).code(), WeightsErrorCode::UnexpectedKeys);
  EXPECT_EQ(other.loader.batch_in_epoch(), 0);
  EXPECT_EQ(other.loader.epoch(), 0);
  save_checkpoint(dir / "foreign", {*other.model});
  EXPECT_ERROR(bare.resume(dir / "foreign"), c10::ValueError, "must be a Trainer's");
  EXPECT_EQ(error_of([&] { bare.resume(dir / "absent"); }).code(), WeightsErrorCode::NotFound);
}

TEST(Trainer, NumbersThatNoRunHasAreRefused) {
  const TempDir dir;
  Training run(TrainerOptions(kSteps).checkpoint(dir / "c").checkpoint_every(3));
  run.trainer.train(3);
  const auto file = load_safetensors(dir / "c");
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"step", "nan"},
                                                        {"step", "inf"},
                                                        {"step", "-1"},
                                                        {"step", "1.5"},
                                                        {"step", "1e300"},
                                                        {"seconds", "nan"},
                                                        {"seconds", "-1"}}) {
    auto metadata = file.metadata;
    metadata["number." + name] = value;
    save_safetensors(dir / "bad", file.tensors, metadata);
    Training other;
    other.trainer.train(1);
    const auto before = all_bits(*other.model);
    EXPECT_ERROR(other.trainer.resume(dir / "bad"), c10::ValueError,
                 "[Trainer] " + (dir / "bad") + ": the number " + name + " must be ");
    EXPECT_EQ(other.trainer.step(), 1);
    EXPECT_TRUE(all_bits(*other.model) == before);
    if (name == "step") {
      EXPECT_ERROR(Trainer::saved_run(dir / "bad"), c10::ValueError, "the number step must be ");
    }
  }
}

TEST(Trainer, ALostRunEndsWithItsLastCheckpoint) {
  const TempDir dir;
  Training run;
  int64_t calls = 0;
  Trainer trainer(
      {*run.model, &run.optimizer, &run.schedule}, run.loader,
      [&](const PairBatch& batch) {
        const auto loss = run.loss()(batch);
        return ++calls < 8 ? loss : loss * std::numeric_limits<float>::infinity();
      },
      TrainerOptions(kSteps).checkpoint(dir / "c").checkpoint_every(5));
  EXPECT_ERROR(trainer.train(), c10::ValueError,
               "[Trainer] the loss must be a finite number; a lower learning rate");
  EXPECT_EQ(Trainer::saved_run(dir / "c").step, 5);
}

TEST(Trainer, DescribesItsProgress) {
  TrainingProgress progress;
  progress.step = 1200, progress.steps = 3600;
  progress.loss = 1.23456, progress.tokens_per_second = 45600.4, progress.seconds_left = 151.2;
  EXPECT_EQ(progress.to_string(), "step 1200/3600  loss 1.2346  45,600 tokens/s  2:31 left");
  progress.seconds_left = 3723, progress.tokens_per_second = 999.6;
  EXPECT_EQ(progress.to_string(), "step 1200/3600  loss 1.2346  1,000 tokens/s  1:02:03 left");
  progress.seconds_left = 0, progress.tokens_per_second = 1234567;
  EXPECT_EQ(progress.to_string(), "step 1200/3600  loss 1.2346  1,234,567 tokens/s  0:00 left");
}

TEST(Trainer, SaysWhatIsWrong) {
  Training run;
  const TrainingRun parts{*run.model, &run.optimizer, &run.schedule};
  const auto make = [&](const TrainerOptions& options) {
    Trainer(parts, run.loader, run.loss(), options);
  };
  EXPECT_ERROR(make(TrainerOptions(0)), c10::ValueError, "[Trainer] steps must be positive. Got 0");
  EXPECT_ERROR(make(TrainerOptions(1).report_every(0)), c10::ValueError,
               "report_every must be positive. Got 0");
  EXPECT_ERROR(make(TrainerOptions(1).clip_norm(-1.0)), c10::ValueError,
               "clip_norm must not be negative. Got -1");
  EXPECT_ERROR(make(TrainerOptions(1).checkpoint_every(-2)), c10::ValueError,
               "checkpoint_every must not be negative. Got -2");
  EXPECT_ERROR(Trainer({*run.model}, run.loader, run.loss(), TrainerOptions(1)), c10::ValueError,
               "a run must have an optimizer");
  EXPECT_ERROR(Trainer(parts, run.loader, nullptr, TrainerOptions(1)), c10::ValueError,
               "a loss is required");
}

}  // namespace
}  // namespace posenc::testing
