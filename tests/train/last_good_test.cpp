// The last good checkpoint stays: options and tensors that are not finite replace no file, and what
// a callback may not do is refused by name.
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "support/compare.h"
#include "support/temp_dir.h"
#include "train/small_run.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TrainerOptions every_step(const TempDir& dir, const std::function<void()>& at_2) {
  return TrainerOptions(4).checkpoint(dir / "c").checkpoint_every(1).report_every(1).report(
      [at_2](const TrainingProgress& progress) {
        if (progress.step == 2) at_2();
      });
}

TEST(LastGood, OptionsThatNoResumeTakesReplaceNoFile) {
  for (const double rate : {std::nan(""), kInf, -0.1}) {
    for (const bool of_libtorch : {false, true}) {
      const TempDir dir;
      SmallRun run;
      torch::optim::AdamW adam(run.model->parameters());
      torch::optim::Optimizer& optimizer =
          of_libtorch ? static_cast<torch::optim::Optimizer&>(adam) : run.optimizer;
      auto& options = optimizer.param_groups()[0].options();
      auto trainer = run.trainer(every_step(dir, [&] { options.set_lr(rate); }), optimizer);
      const std::string text = rate < 0 ? "lr must be at least 0. Got -0.1"
                                        : "the options of the optimiser must be finite. Got lr ";
      for (int i = 0; i < 2; ++i) {  // nor does the next call begin with them
        const std::string message = message_of([&] { trainer.train(); });
        EXPECT_CONTAINS(message, "[Trainer] ");
        EXPECT_CONTAINS(message, text);
        EXPECT_CONTAINS(message, "parameter group 0");
        EXPECT_EQ(trainer.step(), 2);
        EXPECT_EQ(Trainer::saved_run(dir / "c").step, 1);
      }
      options.set_lr(0.1);
      EXPECT_TRUE(trainer.train());
      trainer.resume(dir / "c");
      EXPECT_EQ(trainer.step(), 4);
    }
  }
}

// `stop` comes after the report and before a call of train() returns.
TEST(LastGood, NoCallEndsNormallyWithThem) {
  for (const bool is_saved : {false, true}) {
    const TempDir dir;
    SmallRun run;
    int64_t calls = 0;
    auto options = TrainerOptions(4).stop([&] {
      if (++calls == 2) run.optimizer.param_groups()[0].options().set_lr(std::nan(""));
      return false;
    });
    if (is_saved) options.checkpoint(dir / "c");
    auto trainer = run.trainer(options);
    EXPECT_CONTAINS(message_of([&] { trainer.train(2); }),
                    "[Trainer] the options of the optimiser must be finite. Got lr nan in "
                    "parameter group 0");
    EXPECT_EQ(dir.entries(), 0u);
  }
  SmallRun run;
  torch::optim::RMSprop optimizer(run.model->parameters(), kInf);
  EXPECT_CONTAINS(message_of([&] { run.trainer(TrainerOptions(1), optimizer).train(); }),
                  "must be finite. Got lr inf");
}

// Tensors that are saved but not trained: statistics, and parameters outside the optimiser, frozen
// or complex.
struct Beside : torch::nn::Module {
  explicit Beside(SmallRun& run) {
    register_module("body", run.model.ptr());
    register_module("norm", norm);
    outside = register_parameter("outside", torch::ones({3}));
    frozen = register_parameter("frozen", torch::ones({3}), /*requires_grad=*/false);
    phase = register_parameter("phase", torch::ones({3}, torch::kComplexFloat));
    mask = register_buffer("mask", torch::full({2, 2}, -kInf));
  }
  torch::nn::BatchNorm1d norm{2};
  torch::Tensor outside, frozen, phase, mask;
};

Trainer trainer_of(SmallRun& run, Beside& beside, FusedSGD& optimizer,
                   const TrainerOptions& options) {
  return Trainer(
      {beside, &optimizer}, run.loader, [&run](const PairBatch& batch) { return run.loss(batch); },
      options);
}

TEST(LastGood, TensorsThatAreNotTrainedAreLookedAtToo) {
  const std::vector<std::pair<std::string, std::function<torch::Tensor(Beside&)>>> tensors = {
      {"norm.running_mean", [](Beside& all) { return all.norm->running_mean; }},
      {"outside", [](Beside& all) { return all.outside; }},
      {"frozen", [](Beside& all) { return all.frozen; }},
      {"phase", [](Beside& all) { return torch::view_as_real(all.phase.detach()); }}};
  for (const auto& [name, tensor] : tensors) {
    const TempDir dir;
    SmallRun run;
    Beside beside(run);
    std::vector<torch::Tensor> listed = run.model->parameters();
    listed.push_back(beside.frozen);
    FusedSGD optimizer(listed, 0.1);
    auto trainer = trainer_of(run, beside, optimizer, every_step(dir, [&] {
                                const torch::NoGradGuard no_grad;
                                tensor(beside).flatten()[1].fill_(std::nan(""));
                              }));
    const std::string text =
        "[Trainer] a checkpoint must be finite. Got NaN or infinity in " + name + " after step 2";
    EXPECT_CONTAINS(message_of([&] { trainer.train(); }), text);
    EXPECT_CONTAINS(message_of([&] { trainer.train(); }), text) << "as it was finite at first";
    EXPECT_EQ(Trainer::saved_run(dir / "c").step, 1);
    trainer.resume(dir / "c");
    EXPECT_EQ(message_of([&] { trainer.train(1); }), "");
  }
}

TEST(LastGood, AMaskOfInfinitiesIsSaved) {
  const TempDir dir;
  SmallRun run;
  Beside beside(run);
  FusedSGD optimizer(run.model->parameters(), 0.1);
  auto trainer = trainer_of(run, beside, optimizer, every_step(dir, [] {}));
  EXPECT_TRUE(trainer.train(2));
  trainer.resume(dir / "c");
  EXPECT_TRUE(trainer.train());
  EXPECT_EQ(Trainer::saved_run(dir / "c").step, 4);
}

TEST(LastGood, ATrainerIsNotCalledFromItsOwnCallbacks) {
  for (const std::string where : {"report", "stop", "loss"}) {
    const TempDir dir;
    SmallRun run;
    run.trainer(TrainerOptions(1).checkpoint(dir / "c")).train();
    for (const bool resumes : {false, true}) {
      Trainer* own = nullptr;
      const auto call = [&](const std::string& from) {
        if (own == nullptr || from != where) return false;
        if (resumes) own->resume(dir / "c");
        return own->train();
      };
      run.on_loss = [&] { call("loss"); };
      auto trainer = run.trainer(TrainerOptions(3)
                                     .report_every(1)
                                     .report([&](const TrainingProgress&) { call("report"); })
                                     .stop([&] { return call("stop"); }));
      own = &trainer;
      EXPECT_CONTAINS(message_of([&] { trainer.train(); }),
                      std::string("[Trainer] ") + (resumes ? "resume" : "train") +
                          "() must not be called by the loss, `report` or `stop` of the same "
                          "Trainer");
      own = nullptr;
      EXPECT_TRUE(trainer.train()) << "it can go on";
    }
  }
}

TEST(LastGood, ALossThatIsNoLossIsRefusedByName) {
  SmallRun run;
  const auto with = [&](const std::function<torch::Tensor()>& loss) {
    return message_of([&] {
      Trainer(
          {*run.model, &run.optimizer}, run.loader, [&](const PairBatch&) { return loss(); },
          TrainerOptions(1))
          .train();
    });
  };
  const auto before = run.weights();
  EXPECT_CONTAINS(with([] { return torch::Tensor(); }),
                  "[Trainer] the loss must be a tensor. Got an undefined one");
  EXPECT_CONTAINS(with([&] { return run.second->bias * 2; }),
                  "[Trainer] the loss must be a real scalar. Got CPUFloatType [2]");
  EXPECT_CONTAINS(with([&] { return torch::complex(run.second->bias.sum(), torch::zeros({})); }),
                  "[Trainer] the loss must be a real scalar. Got CPUComplexFloatType []");
  EXPECT_CONTAINS(with([&] { return run.second->bias.detach().sum(); }),
                  "[Trainer] the loss must have a gradient");
  EXPECT_TRUE(bit_equal(run.weights(), before));
}

// What `report` freezes or unfreezes is the run's, and so is resumed.
TEST(LastGood, FrozenPartsAreResumed) {
  for (const bool frozen : {false, true}) {
    const TempDir dir;
    const auto start = [&](SmallRun& run) { run.first->weight.set_requires_grad(!frozen); };
    SmallRun whole, resumed;
    start(whole), start(resumed);
    auto first = whole.trainer(every_step(dir, [&] {
                                 whole.first->weight.set_requires_grad(frozen);
                               }).checkpoint_every(3));
    EXPECT_TRUE(first.train(3));
    auto second = resumed.trainer(TrainerOptions(4));
    second.resume(dir / "c");
    EXPECT_EQ(resumed.first->weight.requires_grad(), frozen);
    EXPECT_TRUE(resumed.second->bias.requires_grad());
    EXPECT_TRUE(first.train());
    EXPECT_TRUE(second.train());
    EXPECT_TRUE(bit_equal(resumed.weights(), whole.weights()));
  }
}

}  // namespace
}  // namespace posenc::testing
