// The training loop on several processes, here threads: the run is that of one process on whole
// batches, and all processes stop, throw and report at the same step.
#include "posenc/train/trainer.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "posenc/train/fused_sgd.h"
#include "posenc/train/lambda_lr.h"
#include "posenc/train/token_cross_entropy.h"
#include "support/compare.h"
#include "support/counting_backend.h"
#include "support/rank_threads.h"
#include "train/parallel/uneven_pairs.h"
#include "transformer/tiny.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

using testing::run_ranks;

constexpr int64_t kSteps = 12;

// A process. Made before the threads start, since all draw from one generator.
struct Process {
  explicit Process(uint64_t weights = 1) {
    torch::manual_seed(testing::seed(weights));
    model->reset_parameters();
  }

  torch::Tensor loss(const PairBatch& batch) {
    ++calls;
    if (on_loss) on_loss();
    const auto logits =
        model->forward(batch.src, batch.tgt_input(), batch.src_mask(), AttentionMask::causal());
    return functional::token_cross_entropy(
        logits, batch.tgt_labels(), functional::TokenCrossEntropyFuncOptions().ignore_index(0));
  }
  Trainer trainer(TrainerOptions options, const RankGroup& group = {}) {
    return Trainer(
        {*model, &optimizer, &schedule}, loader,
        [this](const PairBatch& batch) { return loss(batch) * factor; },
        options.clip_norm(1.0).group(group));
  }

  Transformer model{tiny(Tying::ThreeWay)};
  FusedSGD optimizer{model->parameters(), FusedSGDOptions(1.0).momentum(0.9)};
  LambdaLR schedule{optimizer, warmup_factor(8, 10)};
  PairLoader loader{uneven_pairs(), PairLoaderOptions().max_rows(7).seed(5)};
  std::function<void()> on_loss;
  float factor = 1.0F;
  int64_t calls = 0;
};

using Processes = std::vector<std::unique_ptr<Process>>;

// Processes with different weights: those of rank 0 count.
Processes processes(int count) {
  Processes all;
  for (int i = 0; i < count; ++i) all.push_back(std::make_unique<Process>(1 + i));
  return all;
}

// What `work` throws, as `PeerFailed: message` for a GroupError.
std::string thrown(const std::function<void()>& work) {
  const char* codes[] = {"PeerLost", "TimedOut", "Disagree", "PeerFailed", "Rendezvous"};
  try {
    work();
  } catch (const GroupError& error) {
    return std::string(codes[static_cast<int>(error.code())]) + ": " + error.what();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

void expect_same_weights(const Process& a, const Process& b) {
  EXPECT_TRUE(all_bits(*a.model) == all_bits(*b.model));
}

class Group : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Group, ::testing::Values(2, 3));

TEST_P(Group, TrainsAsOneProcessOnWholeBatches) {
  for (const int64_t micro_batches : {1, 3}) {
    std::vector<double> expected, found;
    const auto options = [&](std::vector<double>& losses) {
      return TrainerOptions(kSteps)
          .report_every(1)
          .micro_batches(micro_batches)
          .report([&](const TrainingProgress& progress) { losses.push_back(progress.loss); });
    };
    Process whole;
    whole.trainer(options(expected)).train();
    const auto ranks = processes(GetParam());
    run_ranks(GetParam(), [&](const RankGroup& group) {
      EXPECT_TRUE(ranks[group.rank()]->trainer(options(found), group).train());
    });
    int64_t calls = 0;
    for (const auto& rank : ranks) {
      expect_same_weights(*rank, *ranks[0]);
      calls += rank->calls;
    }
    EXPECT_LT(calls, kSteps * micro_batches * GetParam()) << "some share was to be empty";
    const auto want = whole.model->parameters(), got = ranks[0]->model->parameters();
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_TRUE(within(Op::Training, got[i].detach(), want[i].detach())) << i;
    }
    ASSERT_EQ(found.size(), expected.size()) << "only rank 0 reports";
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4) << i;
  }
}

TEST_P(Group, OneThatStopsStopsAll) {
  const TempDir dir;
  const auto ranks = processes(GetParam());
  run_ranks(GetParam(), [&](const RankGroup& group) {
    int64_t asked = 0;
    const bool stops = group.rank() == GetParam() - 1;
    auto trainer = ranks[group.rank()]->trainer(
        TrainerOptions(kSteps).checkpoint(dir / "c").stop([&] { return stops && ++asked == 5; }),
        group);
    EXPECT_FALSE(trainer.train());
    EXPECT_EQ(trainer.step(), 5);
    EXPECT_EQ(Trainer::saved_run(dir / "c").step, 5);
  });
}

TEST_P(Group, ALossThatIsNotFiniteOnOneIsAnErrorOnAllAtTheSameStep) {
  const auto ranks = processes(GetParam());
  run_ranks(GetParam(), [&](const RankGroup& group) {
    Process& own = *ranks[group.rank()];
    auto trainer = own.trainer(TrainerOptions(kSteps).report_every(4), group);
    EXPECT_TRUE(trainer.train(5));
    if (group.rank() == 1) own.factor = std::numeric_limits<float>::quiet_NaN();
    EXPECT_CONTAINS(thrown([&] { trainer.train(); }), "[Trainer] the loss must be a finite number");
    EXPECT_EQ(trainer.step(), 8);
  });
}

TEST_P(Group, ALossThatThrowsOnOneUndoesTheStepOnAll) {
  Processes undisturbed = processes(GetParam()), disturbed = processes(GetParam());
  for (auto* ranks : {&undisturbed, &disturbed}) {
    run_ranks(GetParam(), [&](const RankGroup& group) {
      Process& own = *(*ranks)[group.rank()];
      auto trainer = own.trainer(TrainerOptions(kSteps), group);
      if (ranks == &disturbed) {
        EXPECT_TRUE(trainer.train(4));
        if (group.rank() == 1) own.on_loss = [] { throw std::runtime_error("out of memory"); };
        const std::string error = thrown([&] { trainer.train(); });
        EXPECT_EQ(trainer.step(), 4);
        if (group.rank() == 1) {
          EXPECT_EQ(error, "out of memory");
        } else {
          EXPECT_CONTAINS(error, "PeerFailed: [Trainer] rank ");
          EXPECT_CONTAINS(error, "rank 1 failed. Got: out of memory");
        }
        own.on_loss = nullptr;
      }
      EXPECT_TRUE(trainer.train());
    });
  }
  for (size_t i = 0; i < disturbed.size(); ++i) expect_same_weights(*disturbed[i], *undisturbed[i]);
}

// The optimiser of one process fails after those of the others have changed their weights.
TEST_P(Group, AnOptimizerThatThrowsOnOneNeedsAResume) {
  const TempDir dir;
  const auto whole = processes(GetParam()), ranks = processes(GetParam());
  run_ranks(GetParam(), [&](const RankGroup& group) {
    EXPECT_TRUE(whole[group.rank()]->trainer(TrainerOptions(kSteps), group).train());
  });
  run_ranks(GetParam(), [&](const RankGroup& group) {
    Process& own = *ranks[group.rank()];
    auto trainer =
        own.trainer(TrainerOptions(kSteps).checkpoint(dir / "c").checkpoint_every(3), group);
    EXPECT_TRUE(trainer.train(4));
    auto& state = own.optimizer.state();
    if (group.rank() == 0) {  // a state that a step refuses
      const c10::InferenceMode guard;
      auto& first = static_cast<torch::optim::SGDParamState&>(*state.begin()->second);
      first.momentum_buffer(first.momentum_buffer().clone());
    }
    const std::string error = thrown([&] { trainer.train(); });
    EXPECT_CONTAINS(error,
                    group.rank() == 0 ? "must not be an inference tensor" : "rank 0 failed. Got: ");
    EXPECT_EQ(trainer.step(), 5) << "found by the exchange of the next step";
    EXPECT_CONTAINS(thrown([&] { trainer.train(); }), "resume() from the checkpoint");
    trainer.resume(dir / "c");
    EXPECT_EQ(trainer.step(), 3);
    EXPECT_TRUE(trainer.train());
  });
  for (size_t i = 0; i < ranks.size(); ++i) expect_same_weights(*ranks[i], *whole[i]);
}

// The scheduler of one process fails: the others hear of it in the next exchange.
TEST_P(Group, ASchedulerThatThrowsOnOneIsAnErrorOnAll) {
  const auto ranks = processes(GetParam());
  run_ranks(GetParam(), [&](const RankGroup& group) {
    Process& own = *ranks[group.rank()];
    int64_t asked = 0;
    LambdaLR schedule(own.optimizer, [&](int64_t) {
      if (group.rank() == 1 && ++asked == 4) throw std::runtime_error("no such step");
      return 1.0;
    });
    Trainer trainer(
        {*own.model, &own.optimizer, &schedule}, own.loader,
        [&](const PairBatch& batch) { return own.loss(batch); },
        TrainerOptions(kSteps).group(group));
    EXPECT_CONTAINS(thrown([&] { trainer.train(); }),
                    group.rank() == 1
                        ? "no such step"
                        : "PeerFailed: [Trainer] rank " + std::to_string(group.rank()) + " of");
    EXPECT_CONTAINS(thrown([&] { trainer.train(); }), "resume() from the checkpoint");
  });
}

TEST_P(Group, AReportThatThrowsIsAnErrorOnAll) {
  const auto ranks = processes(GetParam());
  run_ranks(GetParam(), [&](const RankGroup& group) {
    auto trainer = ranks[group.rank()]->trainer(
        TrainerOptions(kSteps).report_every(3).report([](const TrainingProgress& progress) {
          if (progress.step == 3) throw std::runtime_error("the terminal is gone");
        }),
        group);
    EXPECT_CONTAINS(thrown([&] { trainer.train(); }), "the terminal is gone");
    EXPECT_EQ(trainer.step(), 3) << "found by the exchange of the next step, which is not done";
    EXPECT_TRUE(trainer.train());
  });
}

TEST_P(Group, ALastReportThatThrowsIsAnErrorOnAll) {
  const auto ranks = processes(GetParam());
  run_ranks(GetParam(), [&](const RankGroup& group) {
    auto trainer = ranks[group.rank()]->trainer(
        TrainerOptions(kSteps).report([](const TrainingProgress& progress) {
          if (progress.step == kSteps) throw std::runtime_error("the terminal is gone");
        }),
        group);
    EXPECT_CONTAINS(thrown([&] { trainer.train(); }), "the terminal is gone");
    EXPECT_EQ(trainer.step(), kSteps);
    EXPECT_TRUE(trainer.train()) << "nothing is left to do, and the weights are the same";
  });
  for (const auto& rank : ranks) expect_same_weights(*rank, *ranks[0]);
}

TEST_P(Group, ProcessesThatDifferAreRefusedOnAll) {
  const auto refused = [&](const std::function<void(Process&, TrainerOptions&)>& change) {
    const auto ranks = processes(GetParam());
    std::string text;
    run_ranks(GetParam(), [&](const RankGroup& group) {
      TrainerOptions options(kSteps);
      Process& own = *ranks[group.rank()];
      if (group.rank() == 1) change(own, options);
      auto trainer = own.trainer(options, group);
      const std::string error = thrown([&] { trainer.train(); });
      EXPECT_CONTAINS(error, "Disagree: [Trainer]");
      EXPECT_EQ(own.calls, 0);
      if (group.rank() == 1) text = error;
    });
    return text;
  };
  EXPECT_CONTAINS(refused([](Process& own, TrainerOptions&) {
                    own.loader =
                        PairLoader(uneven_pairs(), PairLoaderOptions().max_rows(8).seed(5));
                  }),
                  "loader fingerprint");
  EXPECT_CONTAINS(refused([](Process& own, TrainerOptions&) { own.loader.next(); }),
                  "loader taken");
  EXPECT_CONTAINS(refused([](Process&, TrainerOptions& options) { options.steps(kSteps + 1); }),
                  "until 13");
  EXPECT_CONTAINS(refused([](Process&, TrainerOptions& options) { options.report_every(7); }),
                  "report every 7");
  EXPECT_CONTAINS(
      refused([](Process& own, TrainerOptions&) {
        static_cast<FusedSGDOptions&>(own.optimizer.param_groups()[0].options()).momentum(0.5);
      }),
      "momentum 0.5");
}

// Bit for bit, with as many processes as before.
TEST_P(Group, StoppedAndResumedIsTheRunThatNeverWas) {
  const TempDir dir;
  const auto whole = processes(GetParam()), first = processes(GetParam()),
             second = processes(GetParam());
  const auto options = [&] { return TrainerOptions(kSteps).checkpoint(dir / "c"); };
  run_ranks(GetParam(), [&](const RankGroup& group) {
    EXPECT_TRUE(whole[group.rank()]->trainer(TrainerOptions(kSteps), group).train());
  });
  run_ranks(GetParam(), [&](const RankGroup& group) {
    int64_t asked = 0;
    auto trainer =
        first[group.rank()]->trainer(options().stop([&] { return ++asked == 5; }), group);
    trainer.numbers["best"] = group.rank() == 0 ? 0.25 : -1.0;
    EXPECT_FALSE(trainer.train());
  });
  run_ranks(GetParam(), [&](const RankGroup& group) {
    auto trainer = second[group.rank()]->trainer(options(), group);
    trainer.resume(dir / "c");
    EXPECT_EQ(trainer.step(), 5);
    EXPECT_EQ(trainer.numbers, (CheckpointScalars{{"best", 0.25}})) << "rank 0's";
    EXPECT_TRUE(trainer.train());
  });
  for (size_t i = 0; i < whole.size(); ++i) expect_same_weights(*second[i], *whole[i]);
}

TEST_P(Group, AResumeThatFailsOnOneChangesNothingOnAny) {
  const TempDir dir;
  const auto ranks = processes(GetParam());
  run_ranks(GetParam(), [&](const RankGroup& group) {
    Process& own = *ranks[group.rank()];
    auto trainer = own.trainer(TrainerOptions(kSteps).checkpoint(dir / "c"), group);
    EXPECT_TRUE(trainer.train());
    const auto before = all_bits(*own.model);
    const std::string error =
        thrown([&] { trainer.resume(dir / (group.rank() == 1 ? "absent" : "c")); });
    EXPECT_CONTAINS(error, group.rank() == 1 ? "No such file" : "PeerFailed: [Trainer]");
    EXPECT_TRUE(all_bits(*own.model) == before);
    EXPECT_EQ(trainer.step(), kSteps);
  });
}

// The loss, a request to stop, reports and failures travel with the gradients, which fit into one
// bucket.
TEST(GroupTraffic, AStepIsOneExchange) {
  const auto ranks = processes(2);
  testing::run_counted_ranks(2, [&](const RankGroup& group) {
    int64_t reports = 0;
    auto trainer =
        ranks[group.rank()]->trainer(TrainerOptions(kSteps)
                                         .stop([] { return false; })
                                         .report_every(1)
                                         .report([&](const TrainingProgress&) { ++reports; }),
                                     group);
    trainer.train(1);
    const auto calls_of = [&](int64_t steps) {
      testing::reset_traffic(group);
      trainer.train(trainer.step() + steps);
      std::map<std::string, int64_t> calls;
      for (const auto& [name, count] : testing::traffic(group)) calls[name] = count.calls;
      return calls;
    };
    auto of_two = calls_of(2);
    const auto of_seven = calls_of(7);
    of_two["all_reduce"] += 5;
    EXPECT_EQ(of_seven, of_two);
    EXPECT_EQ(reports, group.rank() == 0 ? 10 : 0);
  });
}

TEST(TrainerOptions, AGroupIsGivenOnce) {
  run_ranks(1, [](const RankGroup& group) {
    Process own;
    TrainingRun run{*own.model, &own.optimizer};
    run.group = group;
    EXPECT_ERROR(Trainer(
                     run, own.loader, [&](const PairBatch& batch) { return own.loss(batch); },
                     TrainerOptions(1)),
                 c10::ValueError, "a run's group must be the one of TrainerOptions");
  });
}

}  // namespace
}  // namespace posenc::testing
