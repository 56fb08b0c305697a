// Checkpoints of n processes, read by m: one file, the same as one process writes.
#include "posenc/train/checkpoint.h"

#include <ATen/Context.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "posenc/train/fused_adam.h"
#include "posenc/train/lambda_lr.h"
#include "posenc/weights/load.h"
#include "posenc/weights/safetensors.h"
#include "posenc/weights/save.h"
#include "support/compare.h"
#include "support/rank_threads.h"
#include "weights/support.h"
#include "weights/tied_model.h"

namespace posenc::testing {
namespace {

using testing::run_ranks;
using Code = WeightsErrorCode;

struct GroupTraining {
  explicit GroupTraining(const RankGroup& group_ = {}) : group(group_) { model.fill(0.5); }

  // Gradients that depend on the step only, as those that an exchange has summed.
  void train(int from, int to) {
    for (int step = from; step < to; ++step) {
      const auto turned =
          (at::linspace(-1, 1, model.table.numel()).view_as(model.table) * (step + 1)).sin();
      model.table.mutable_grad() = turned;
      model.bias.mutable_grad() = turned.select(1, 0).clone();
      model.matrix.mutable_grad() = (model.matrix + step).cos().detach();
      optimizer.step();
      schedule.step();
      model.count.add_(1);
    }
  }
  TrainingRun parts() {
    TrainingRun run{model, &optimizer, &schedule};
    run.group = group;
    return run;
  }

  TiedModel model;
  RankGroup group;
  FusedAdam optimizer{model.parameters(), FusedAdamOptions(0.1).amsgrad(true)};
  LambdaLR schedule{optimizer, warmup_factor(8, 4)};
};

void expect_equal_files(const std::string& found, const std::string& expected) {
  const auto a = load_safetensors(found), b = load_safetensors(expected);
  for (const auto& item : b.tensors) {
    ASSERT_TRUE(a.tensors.contains(item.key())) << item.key();
    if (item.key() == "generator.cpu") continue;
    EXPECT_TRUE(identical(a.tensors[item.key()], item.value())) << item.key();
  }
  for (const auto& [key, value] : b.metadata) EXPECT_EQ(a.metadata.at(key), value) << key;
}

TEST(GroupCheckpoint, OfAnyNumberOfProcessesIsReadByAnyOther) {
  const TempDir dir;
  GroupTraining whole;
  whole.train(0, 4);
  save_checkpoint(dir / "whole", whole.parts(), {{"epoch", 4}});
  GroupTraining end;
  end.train(0, 9);
  save_checkpoint(dir / "end", end.parts());
  for (const int saved_by : {1, 2, 3, 8}) {
    run_ranks(saved_by, [&](const RankGroup& group) {
      GroupTraining run(group);
      run.train(0, 4);
      save_checkpoint(dir / "c", run.parts(), {{"epoch", 4.0 + group.rank()}});
    });
    expect_equal_files(dir / "c", dir / "whole");
    for (const int loaded_by : {1, 2, 3, 8}) {
      SCOPED_TRACE(std::to_string(saved_by) + " to " + std::to_string(loaded_by));
      run_ranks(loaded_by, [&](const RankGroup& group) {
        GroupTraining run(group);
        run.model.fill(9.0);
        run.train(0, 2);
        EXPECT_EQ(load_checkpoint(dir / "c", run.parts()), (CheckpointScalars{{"epoch", 4}}));
        run.train(4, 9);
        save_checkpoint(dir / "resumed", run.parts());
      });
      expect_equal_files(dir / "resumed", dir / "end");
    }
  }
}

TEST(GroupCheckpoint, OfOneProcessIsTheFileWithoutAGroup) {
  const TempDir dir;
  GroupTraining whole;
  save_checkpoint(dir / "whole", whole.parts());
  run_ranks(1, [&](const RankGroup& group) {
    GroupTraining run(group);
    save_checkpoint(dir / "c", run.parts());
  });
  EXPECT_EQ(read_bytes(dir / "c"), read_bytes(dir / "whole"));
}

TEST(GroupCheckpoint, KeepsTheGeneratorOfEachProcess) {
  const TempDir dir;
  torch::manual_seed(3);
  run_ranks(3, [&](const RankGroup& group) {
    GroupTraining run(group);
    save_checkpoint(dir / "c", run.parts());
  });
  auto file = load_safetensors(dir / "c");
  EXPECT_EQ(file.metadata.at("ranks"), "3");
  // Threads share a generator, processes do not: give each a state of its own.
  std::vector<at::Tensor> states;
  for (const char* name : {"generator.cpu", "generator.cpu.1", "generator.cpu.2"}) {
    torch::manual_seed(100 + states.size());
    auto generator = at::globalContext().defaultGenerator(at::kCPU);
    states.push_back(generator.get_state());
    ASSERT_TRUE(file.tensors.contains(name)) << name;
    file.tensors[name] = states.back();
  }
  save_safetensors(dir / "c", file.tensors, file.metadata);

  // Which of the threads is the last to set the generator is open.
  const auto loaded_by = [&](int ranks) {
    torch::manual_seed(1);
    run_ranks(ranks, [&](const RankGroup& group) {
      GroupTraining run(group);
      load_checkpoint(dir / "c", run.parts());
    });
    return at::globalContext().defaultGenerator(at::kCPU).get_state();
  };
  const auto is_saved = [&](const at::Tensor& state) {
    return std::any_of(states.begin(), states.end(),
                       [&](const at::Tensor& one) { return at::equal(state, one); });
  };
  EXPECT_TRUE(is_saved(loaded_by(3)));
  EXPECT_FALSE(is_saved(loaded_by(2)));
  const at::Tensor alone = loaded_by(1);
  EXPECT_FALSE(is_saved(alone));
  EXPECT_TRUE(at::equal(alone, loaded_by(1))) << "the same each time";
  file.tensors.erase("generator.cpu.2");
  save_safetensors(dir / "less", file.tensors, file.metadata);
  run_ranks(3, [&](const RankGroup& group) {
    GroupTraining run(group);
    std::string what;
    try {
      load_checkpoint(dir / "less", run.parts());
    } catch (const std::exception& error) {
      what = error.what();
    }
    EXPECT_CONTAINS(what, "'generator.cpu.2' is missing, and a checkpoint of 3 processes has it");
  });
}

// A limit on the size of files, as a full disk: rank 0 fails in the middle, while others wait.
TEST(GroupCheckpoint, AFullDiskIsAnErrorOnAllAndKeepsTheOldFile) {
  const TempDir dir;
  GroupTraining whole;
  save_checkpoint(dir / "c", whole.parts());
  const std::string before = read_bytes(dir / "c");
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  for (const rlim_t bytes : {100, 3000}) {  // in the header, and in the data
    run_ranks(3, [&](const RankGroup& group) {
      GroupTraining run(group);
      run.train(0, 3);
      if (group.rank() == 0) {
        const rlimit limit{bytes, old.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
      }
      try {
        save_checkpoint(dir / "c", run.parts());
        ADD_FAILURE() << "saved by rank " << group.rank();
      } catch (const WeightsError& error) {
        EXPECT_EQ(group.rank(), 0);
        EXPECT_EQ(error.code(), Code::Io);
        EXPECT_EQ(error.file(), dir / "c");
      } catch (const GroupError& error) {
        EXPECT_NE(group.rank(), 0);
        EXPECT_EQ(error.code(), GroupErrorCode::PeerFailed);
        EXPECT_CONTAINS(error.what(), "[save_checkpoint] rank");
        EXPECT_CONTAINS(error.what(), "File too large");
      }
      if (group.rank() == 0) setrlimit(RLIMIT_FSIZE, &old);
    });
    EXPECT_EQ(read_bytes(dir / "c"), before);
    EXPECT_EQ(dir.entries(), 1u);
  }
  std::signal(SIGXFSZ, handler);
}

TEST(GroupCheckpoint, ProcessesWithOtherModelsAreRefused) {
  const TempDir dir;
  run_ranks(2, [&](const RankGroup& group) {
    GroupTraining run(group);
    if (group.rank() == 1) run.model.register_buffer("more", at::zeros({2}));
    try {
      save_checkpoint(dir / "c", run.parts());
      ADD_FAILURE() << "saved";
    } catch (const GroupError& error) {
      EXPECT_EQ(error.code(), GroupErrorCode::Disagree);
      EXPECT_CONTAINS(error.what(), "model.more");
    }
  });
  EXPECT_EQ(dir.entries(), 0u);
}

}  // namespace
}  // namespace posenc::testing
