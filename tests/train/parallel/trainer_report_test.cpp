// What `report` does on rank 0 alone: rates that it sets are those of all processes, what it cannot
// share is refused, and its exceptions cost no checkpoint. Options and states are compared.
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "posenc/train/checkpoint.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/lambda_lr.h"
#include "posenc/train/trainer.h"
#include "support/compare.h"
#include "support/rank_threads.h"
#include "train/small_run.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

using testing::run_ranks;
using Progress = TrainingProgress;

struct Rank : SmallRun {
  Rank() { loader = PairLoader(few_pairs(), PairLoaderOptions().max_rows(2)); }
};

std::vector<std::unique_ptr<Rank>> ranks(int count) {
  std::vector<std::unique_ptr<Rank>> all;
  for (int i = 0; i < count; ++i) all.push_back(std::make_unique<Rank>());
  return all;
}

// At a report within the run, at the last of a call, and before one that throws.
TEST(GroupReport, RatesThatItSetsAreThoseOfAllProcesses) {
  for (const int64_t until : {20, 10}) {
    for (const bool fails : {false, true}) {
      const auto all = ranks(2);
      run_ranks(2, [&](const RankGroup& group) {
        Rank& own = *all[group.rank()];
        auto trainer = own.trainer(
            TrainerOptions(20).group(group).report_every(5).report([&](const Progress& progress) {
              if (progress.step == 10) own.optimizer.set_named_options(0, {{"lr", 1e-3}});
              TORCH_CHECK(progress.step != 10 || !fails, "the terminal is gone");
            }));
        EXPECT_EQ(message_of([&] { trainer.train(until); }).empty(), !fails);
        EXPECT_EQ(message_of([&] { trainer.train(); }), "");
        EXPECT_EQ(trainer.step(), 20);
        EXPECT_EQ(own.optimizer.named_options(0).at("lr"), 1e-3);
      });
      EXPECT_TRUE(bit_equal(all[0]->weights(), all[1]->weights()));
    }
  }
}

TEST(GroupReport, ARateOfAnOptimiserThatShowsNothingElseIsShared) {
  const auto all = ranks(2);
  run_ranks(2, [&](const RankGroup& group) {
    Rank& own = *all[group.rank()];
    torch::optim::RMSprop optimizer(own.model->parameters(), 0.1);
    auto trainer =
        own.trainer(TrainerOptions(9).group(group).report_every(3).report([&](const Progress&) {
          optimizer.param_groups()[0].options().set_lr(0.01);
        }),
                    optimizer);
    EXPECT_TRUE(trainer.train());
    EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), 0.01);
  });
  EXPECT_TRUE(bit_equal(all[0]->weights(), all[1]->weights()));
}

TEST(GroupReport, WhatItFreezesIsRefusedByName) {
  const auto all = ranks(2);
  run_ranks(2, [&](const RankGroup& group) {
    Rank& own = *all[group.rank()];
    auto trainer = own.trainer(TrainerOptions(9).group(group).report_every(3).report(
        [&](const Progress&) { own.first->weight.set_requires_grad(false); }));
    EXPECT_CONTAINS(message_of([&] { trainer.train(); }),
                    "`report` must not change requires_grad in a group, since it is called on rank "
                    "0 only. Got another one of 0.weight");
    EXPECT_TRUE(own.first->weight.requires_grad());
  });
}

// The processes go on with the options that they had.
TEST(GroupReport, OptionsThatCannotBeSharedAreRefused) {
  const auto all = ranks(2);
  run_ranks(2, [&](const RankGroup& group) {
    Rank& own = *all[group.rank()];
    std::unique_ptr<LambdaLR> schedule;
    auto trainer = own.trainer(
        TrainerOptions(9).group(group).report_every(3).report([&](const Progress& progress) {
          if (progress.step == 3)
            static_cast<FusedSGDOptions&>(own.optimizer.param_groups()[0].options()).lr(-1.0);
          if (progress.step == 6)
            schedule = std::make_unique<LambdaLR>(own.optimizer, cosine_factor(0, 9));
        }));
    EXPECT_CONTAINS(message_of([&] { trainer.train(); }), "lr must be at least 0. Got -1");
    EXPECT_CONTAINS(message_of([&] { trainer.train(); }),
                    "`report` must not add parameter groups, or a first schedule, in a group");
  });
}

// On the way, and at the last report of a call.
TEST(GroupReport, WhatItWritesIsRefusedByName) {
  for (const bool writes_state : {false, true}) {
    for (const int64_t until : {9, 3}) {
      const TempDir dir;
      const auto all = ranks(2);
      run_ranks(2, [&](const RankGroup& group) {
        Rank& own = *all[group.rank()];
        own.optimizer.set_named_options(0, {{"momentum", 0.9}});
        bool writes = true;
        auto trainer = own.trainer(
            TrainerOptions(9)
                .group(group)
                .checkpoint(dir / "c")
                .checkpoint_every(until == 9 ? 2 : 1)
                .report_every(3)
                .report([&](const Progress&) {
                  if (!std::exchange(writes, false)) return;
                  const torch::NoGradGuard no_grad;
                  auto& state = static_cast<torch::optim::SGDParamState&>(
                      *own.optimizer.state().at(own.first->weight.unsafeGetTensorImpl()));
                  (writes_state ? state.momentum_buffer() : own.first->weight).mul_(0.5);
                }));
        const std::string message = message_of([&] { trainer.train(until); });
        EXPECT_CONTAINS(message,
                        std::string("`report` must not write weights or the optimiser's state in a "
                                    "group, since it is called on rank 0 only. Got a write to ") +
                            (writes_state ? "the state momentum_buffer of 0.weight" : "0.weight"));
        EXPECT_CONTAINS(message_of([&] { trainer.train(); }), "resume() from the checkpoint");
        EXPECT_EQ(Trainer::saved_run(dir / "c").step, 2);
        trainer.resume(dir / "c");
        EXPECT_TRUE(trainer.train());
      });
      EXPECT_TRUE(bit_equal(all[0]->weights(), all[1]->weights()));
    }
  }
}

// Before the step that they are for.
TEST(GroupReport, OptionsThatOtherCallbacksSetOnOneAreRefused) {
  for (const bool in_stop : {false, true}) {
    const auto all = ranks(2);
    run_ranks(2, [&](const RankGroup& group) {
      Rank& own = *all[group.rank()];
      int64_t calls = 0;
      const auto change = [&] {
        if (++calls == 4 && group.rank() == 1) own.optimizer.set_named_options(0, {{"lr", 1e-3}});
        return false;
      };
      TrainerOptions options = TrainerOptions(9).group(group);
      in_stop ? void(options.stop(change)) : void(own.on_loss = change);
      auto trainer = own.trainer(options);
      for (int i = 0; i < 2; ++i) {
        const std::string message = message_of([&] { trainer.train(); });
        EXPECT_CONTAINS(message, "parameter group 0: lr 0.001");
        EXPECT_EQ(trainer.step(), 3);
      }
      own.optimizer.set_named_options(0, {{"lr", 0.1}});
      EXPECT_TRUE(trainer.train());
    });
    EXPECT_TRUE(bit_equal(all[0]->weights(), all[1]->weights()));
  }
}

// Those that all processes set, each by itself, are the run's.
TEST(GroupReport, OptionsThatOtherCallbacksSetOnAllAreTaken) {
  const auto all = ranks(2);
  run_ranks(2, [&](const RankGroup& group) {
    Rank& own = *all[group.rank()];
    auto trainer = own.trainer(TrainerOptions(9).group(group).stop([&] {
      own.optimizer.set_named_options(0, {{"lr", 1e-3}});
      return false;
    }));
    EXPECT_TRUE(trainer.train());
  });
  EXPECT_TRUE(bit_equal(all[0]->weights(), all[1]->weights()));
}

TEST(GroupReport, AnExceptionCostsNoCheckpoint) {
  const TempDir dir;
  const auto all = ranks(2);
  run_ranks(2, [&](const RankGroup& group) {
    auto trainer =
        all[group.rank()]->trainer(TrainerOptions(6)
                                       .group(group)
                                       .checkpoint(dir / "c")
                                       .checkpoint_every(4)
                                       .report_every(4)
                                       .report([](const Progress&) {
                                         throw std::runtime_error("no space left on the device");
                                       }));
    for (const int64_t step : {4, 6}) {
      EXPECT_CONTAINS(message_of([&] { trainer.train(); }), "no space left");
      EXPECT_EQ(trainer.step(), step);
      EXPECT_EQ(Trainer::saved_run(dir / "c").step, step);
    }
    EXPECT_TRUE(trainer.train());
  });
}

TEST(GroupReport, ASaveThatFailedOnRank0IsMadeUpFor) {
  const TempDir dir;
  const auto all = ranks(2);
  run_ranks(2, [&](const RankGroup& group) {
    auto trainer =
        all[group.rank()]->trainer(TrainerOptions(6).group(group).checkpoint(dir / "c").report(
            [&](const Progress&) { std::filesystem::create_directory(dir / "c"); }));
    EXPECT_NE(message_of([&] { trainer.train(); }), "");
    EXPECT_EQ(trainer.step(), 6);
    group.barrier();
    if (group.rank() == 0) std::filesystem::remove(dir / "c");
    EXPECT_TRUE(trainer.train());
    EXPECT_EQ(Trainer::saved_run(dir / "c").step, 6);
  });
}

// It would wait for the others until the group's time-out.
TEST(GroupReport, ACallOfAllProcessesInAReportIsRefusedAtOnce) {
  const TempDir dir;
  const auto all = ranks(2);
  run_ranks(2, [&](const RankGroup& group) {
    Rank& own = *all[group.rank()];
    TrainingRun parts{*own.model, &own.optimizer};
    parts.group = group;
    auto trainer = own.trainer(TrainerOptions(6).group(group).report_every(3).report(
        [&](const Progress&) { save_checkpoint(dir / "c", parts); }));
    EXPECT_CONTAINS(message_of([&] { trainer.train(); }),
                    "[save_checkpoint] all processes of a group must call it, and `report` is "
                    "called on rank 0 only");
  });
}

// What all processes say of a difference that `change` makes on rank 1.
std::string disagreement(const std::function<void(Rank&, int rank)>& prepare,
                         const std::function<Trainer(Rank&, const TrainerOptions&)>& make) {
  const auto all = ranks(2);
  for (int i = 0; i < 2; ++i) prepare(*all[i], i);
  std::string text;
  run_ranks(2, [&](const RankGroup& group) {
    Rank& own = *all[group.rank()];
    auto trainer = make(own, TrainerOptions(3).group(group));
    const std::string error = message_of([&] { trainer.train(); });
    if (group.rank() == 1) text = error;
  });
  return text;
}

TEST(GroupReport, OptionsOfLibTorchsOptimisersAreCompared) {
  std::vector<std::unique_ptr<torch::optim::AdamW>> optimizers(2);
  const auto text = disagreement(
      [&](Rank& own, int rank) {
        optimizers[rank] = std::make_unique<torch::optim::AdamW>(
            own.model->parameters(), torch::optim::AdamWOptions(0.1).weight_decay(rank));
      },
      [&](Rank& own, const TrainerOptions& options) {
        return own.trainer(options, *optimizers[options.group().rank()]);
      });
  EXPECT_CONTAINS(text, "parameter group 0: weight_decay 1");
}

TEST(GroupReport, StatesModesAndOrdersOfParametersAreCompared) {
  const auto momentum = [](Rank& own) { own.optimizer.set_named_options(0, {{"momentum", 0.9}}); };
  const auto plain = [](Rank& own, const TrainerOptions& options) { return own.trainer(options); };
  EXPECT_CONTAINS(disagreement(
                      [&](Rank& own, int rank) {
                        momentum(own);
                        if (rank == 1) own.trainer(TrainerOptions(2)).train();
                        own.loader = PairLoader(few_pairs());
                      },
                      plain),
                  "parameter group 0: 0.weight with momentum_buffer");
  EXPECT_CONTAINS(disagreement(
                      [&](Rank& own, int rank) {
                        if (rank == 1) own.first->eval();
                      },
                      plain),
                  "in eval mode: 0");
}

}  // namespace
}  // namespace posenc::testing
