// What a run is made of is looked at before its first step: the optimiser's parameters are the
// module's, each once, the run can be saved, and the file is its own.
#include <gtest/gtest.h>
#include <torch/nn/modules/embedding.h>
#include <torch/optim/adam.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/schedulers/step_lr.h>

#include <string>
#include <vector>

#include "posenc/train/checkpoint.h"
#include "posenc/train/fused_adam.h"
#include "posenc/train/lambda_lr.h"
#include "posenc/weights/safetensors.h"
#include "posenc/weights/save.h"
#include "support/compare.h"
#include "support/temp_dir.h"
#include "train/small_run.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

constexpr const char* kMustBeOwn =
    "every parameter of the optimiser must be one of the module's, which is what is saved, clipped "
    "and exchanged. Got ";

TEST(OwnedRun, AHeadBesideTheBodyIsRefused) {
  const TempDir dir;
  SmallRun run;
  torch::nn::Linear head(2, 3);
  std::vector<torch::Tensor> all = run.model->parameters();
  for (const auto& parameter : head->parameters()) all.push_back(parameter);
  FusedAdam adam(all, 1e-2);
  const auto before = run.weights();
  const std::string got = "parameter 4 of group 0, [3, 2], which the module does not have";
  EXPECT_ERROR(run.trainer(TrainerOptions(5), adam).train(), c10::ValueError,
               std::string("[Trainer] ") + kMustBeOwn + got);
  EXPECT_ERROR(save_checkpoint(dir / "c", {*run.model, &adam}), c10::ValueError,
               std::string("[save_checkpoint] ") + kMustBeOwn + got);
  EXPECT_EQ(dir.entries(), 0u);
  save_checkpoint(dir / "c", {*run.model, &run.optimizer});
  EXPECT_ERROR(load_checkpoint(dir / "c", {*run.model, &adam}), c10::ValueError,
               std::string("[load_checkpoint] ") + kMustBeOwn + got);
  EXPECT_TRUE(bit_equal(run.weights(), before));
}

TEST(OwnedRun, TheOptimiserOfAnotherModelIsRefused) {
  SmallRun run, other;
  EXPECT_ERROR(run.trainer(TrainerOptions(5), other.optimizer).train(), c10::ValueError,
               std::string("[Trainer] ") + kMustBeOwn +
                   "none of them: make the optimiser from this module's parameters");
}

TEST(OwnedRun, ALayerReplacedBetweenTwoCallsNeedsANewOptimiser) {
  SmallRun run;
  auto trainer = run.trainer(TrainerOptions(5));
  EXPECT_TRUE(trainer.train(2));
  run.model->replace_module("1", torch::nn::Linear(4, 2).ptr());
  EXPECT_CONTAINS(message_of([&] { trainer.train(); }),
                  "Got parameter 2 of group 0, [2, 4], which");
  EXPECT_EQ(trainer.step(), 2);
}

// Module::parameters() lists a tied matrix under each of its names.
TEST(OwnedRun, AParameterThatAnOptimiserWouldStepTwiceIsRefused) {
  torch::nn::Linear layer(4, 4);
  torch::nn::Sequential model(layer, layer);
  PairLoader loader(few_pairs());
  const auto loss = [&](const PairBatch&) { return layer->weight.sum(); };
  torch::optim::Adam twice(model->parameters(), 1e-2);
  EXPECT_ERROR(Trainer({*model, &twice}, loader, loss, TrainerOptions(1)).train(), c10::ValueError,
               "[Trainer] an optimiser must hold each parameter once. Got 0.weight as parameters 0 "
               "and 2 of group 0; posenc's optimisers, such as FusedAdam, step it once");
  FusedAdam once(model->parameters(), 1e-2);
  const auto before = layer->weight.detach().clone();
  EXPECT_TRUE(Trainer({*model, &once}, loader, loss, TrainerOptions(1)).train());
  EXPECT_TRUE(torch::allclose(before - layer->weight.detach(), torch::full({4, 4}, 1e-2)));
}

TEST(OwnedRun, WhatCannotBeSavedIsRefusedBeforeTheFirstStep) {
  const TempDir dir;
  SmallRun run;
  torch::optim::RMSprop optimizer(run.model->parameters());
  auto trainer = run.trainer(TrainerOptions(5).checkpoint(dir / "c"), optimizer);
  EXPECT_EQ(error_of([&] { trainer.train(); }).code(), WeightsErrorCode::Unsupported);
  EXPECT_EQ(trainer.step(), 0);
  EXPECT_TRUE(run.trainer(TrainerOptions(5), optimizer).train()) << "nothing is to be saved";
  auto nowhere = run.trainer(TrainerOptions(5).checkpoint(dir / "absent/c"));
  EXPECT_EQ(error_of([&] { nowhere.train(); }).code(), WeightsErrorCode::NotFound);
  EXPECT_EQ(nowhere.step(), 0);
  EXPECT_EQ(dir.entries(), 0u);
}

TEST(OwnedRun, CheckpointEveryNeedsAFile) {
  SmallRun run;
  EXPECT_ERROR(run.trainer(TrainerOptions(5).checkpoint_every(2)), c10::ValueError,
               "[Trainer] checkpoint_every needs a file, checkpoint(path). Got checkpoint_every 2");
}

TEST(OwnedRun, AScheduleOfAnotherOptimiserIsRefused) {
  SmallRun run, other;
  torch::optim::StepLR step(other.optimizer, 2);
  LambdaLR lambda(other.optimizer, cosine_factor(0, 9));
  for (torch::optim::LRScheduler* const schedule :
       std::vector<torch::optim::LRScheduler*>{&step, &lambda}) {
    auto trainer = run.trainer(TrainerOptions(5), run.optimizer, schedule);
    EXPECT_CONTAINS(message_of([&] { trainer.train(); }),
                    "[Trainer] the scheduler must be of the run's optimiser. Got one that sets the "
                    "rates of another");
    EXPECT_EQ(trainer.step(), 0);
  }
  const auto rate = run.optimizer.named_options(0).at("lr");
  torch::optim::StepLR own(run.optimizer, 2);
  EXPECT_TRUE(run.trainer(TrainerOptions(1), run.optimizer, &own).train());
  EXPECT_EQ(run.optimizer.named_options(0).at("lr"), rate);
}

TEST(OwnedRun, AGroupWithoutARateOfTheScheduleIsRefused) {
  SmallRun run;
  FusedSGD optimizer(run.first->parameters(), 0.1);
  LambdaLR schedule(optimizer, cosine_factor(0, 9));
  optimizer.add_param_group(run.second->parameters());
  auto trainer = run.trainer(TrainerOptions(5), optimizer, &schedule);
  EXPECT_CONTAINS(message_of([&] { trainer.train(); }),
                  "[Trainer] the scheduler must have a rate for each parameter group. Got 1 for 2");
  EXPECT_EQ(trainer.step(), 0);
}

TEST(OwnedRun, AnotherRunsFileIsNotReplaced) {
  const TempDir dir;
  SmallRun run, other;
  auto first = run.trainer(TrainerOptions(3).checkpoint(dir / "c"));
  EXPECT_TRUE(first.train());
  auto second = other.trainer(TrainerOptions(9).checkpoint(dir / "c"));
  EXPECT_CONTAINS(
      message_of([&] { second.train(); }),
      "[Trainer] " + (dir / "c") +
          ": the file must be of this run. Got that of another "
          "run, at step 3; resume() from it, save elsewhere, or allow it by overwrite(true)");
  EXPECT_EQ(second.step(), 0);
  EXPECT_EQ(Trainer::saved_run(dir / "c").step, 3);
  second.resume(dir / "c");
  EXPECT_TRUE(second.train()) << "it goes on with the other run";
  EXPECT_ERROR(first.resume(dir / "absent"), WeightsError, "No such file");
  save_weights(*run.model, dir / "weights.safetensors");
  auto third = run.trainer(TrainerOptions(5).checkpoint(dir / "weights.safetensors"));
  EXPECT_CONTAINS(message_of([&] { third.train(); }),
                  "Got a file that is no checkpoint of a Trainer");
  EXPECT_TRUE(run.trainer(TrainerOptions(5).checkpoint(dir / "c").overwrite(true)).train());
  EXPECT_EQ(Trainer::saved_run(dir / "c").step, 5);
}

// Files of versions that gave runs no id are replaced by the run that was resumed from them.
TEST(OwnedRun, AnOldFileIsResumedAndReplaced) {
  const TempDir dir;
  SmallRun run;
  run.trainer(TrainerOptions(3).checkpoint(dir / "c")).train();
  auto file = load_safetensors(dir / "c");
  for (const char* key : {"run", "option.clip_norm", "option.micro_batches"})
    EXPECT_EQ(file.metadata.erase(std::string("number.") + key), 1u) << key;
  save_safetensors(dir / "c", file.tensors, file.metadata);
  auto stranger = run.trainer(TrainerOptions(5).checkpoint(dir / "c"));
  EXPECT_CONTAINS(message_of([&] { stranger.train(); }), "of another run, at step 3");
  auto trainer = run.trainer(TrainerOptions(5).checkpoint(dir / "c").clip_norm(9.0));
  trainer.resume(dir / "c");
  EXPECT_TRUE(trainer.train());
  EXPECT_EQ(Trainer::saved_run(dir / "c").step, 5);
  EXPECT_EQ(load_safetensors(dir / "c").metadata.count("number.run"), 1u);
}

TEST(OwnedRun, OtherOptionsAreRefusedOnResume) {
  const TempDir dir;
  SmallRun run, other;
  run.trainer(TrainerOptions(3).checkpoint(dir / "c").clip_norm(0.5).micro_batches(2)).train();
  const auto before = other.weights();
  auto plain = other.trainer(TrainerOptions(5).micro_batches(2));
  EXPECT_ERROR(plain.resume(dir / "c"), c10::ValueError,
               "[Trainer] " + (dir / "c") +
                   ": a run must be resumed with its own clip_norm, 0.5. "
                   "Got 0; allow it by changed_options(true)");
  auto many = other.trainer(TrainerOptions(5).clip_norm(0.5));
  EXPECT_ERROR(many.resume(dir / "c"), c10::ValueError, "its own micro_batches, 2. Got 1;");
  EXPECT_TRUE(bit_equal(other.weights(), before));
  EXPECT_EQ(other.loader.epoch(), 0);
  auto allowed = other.trainer(TrainerOptions(5).changed_options(true));
  allowed.resume(dir / "c");
  EXPECT_EQ(allowed.step(), 3);
}

}  // namespace
}  // namespace posenc::testing
