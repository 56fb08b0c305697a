// Steps whose gradients change: passes that are paused too late, and parameters whose gradients are
// dense on some processes and sparse on others.

#include <gtest/gtest.h>
#include <torch/nn/cloneable.h>

#include "posenc/train/data_parallel.h"
#include "support/compare.h"
#include "support/rank_threads.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::message_of;
using testing::run_ranks;

struct TwoTables : torch::nn::Cloneable<TwoTables> {
  TwoTables() { TwoTables::reset(); }
  void reset() override {
    a = register_parameter("a", torch::ones({4, 2}));
    b = register_parameter("b", torch::ones({3}));
  }
  torch::Tensor a, b;
};

TEST(DataParallelSteps, APassThatIsPausedAfterAGradientWasSentIsAnError) {
  run_ranks(2, [](const RankGroup& group) {
    TwoTables module;
    DataParallel parallel(module, group);
    (module.a.sum() + module.b.sum()).backward();
    const DataParallelPause pause = parallel.pause();
    EXPECT_NE(message_of([&] { module.a.sum().backward(); }).find("pause() all micro-batches"),
              std::string::npos);
  });
}

// The look-up of these rows with a sparse or a dense gradient of ones.
torch::Tensor rows_of(const torch::Tensor& table, bool sparse) {
  return torch::embedding(table, torch::tensor({1, 3, 1}), -1, false, sparse).sum();
}

TEST(DataParallelSteps, KindsMayDifferWhileAParameterHasNoPlace) {
  run_ranks(2, [](const RankGroup& group) {
    TwoTables module;
    DataParallel parallel(module, group);
    const auto want = torch::tensor({{0, 0}, {4, 4}, {0, 0}, {2, 2}}).to(torch::kFloat);
    for (const bool sparse : {true, true, group.rank() == 1, group.rank() == 0, false}) {
      (rows_of(module.a, sparse) + module.b.sum()).backward();
      parallel.finish();
      const torch::Tensor& grad = module.a.grad();
      EXPECT_TRUE(bit_equal(grad.is_sparse() ? grad.to_dense() : grad.clone(), want));
      EXPECT_TRUE(bit_equal(module.b.grad().clone(), torch::full({3}, 2.0f)));
      module.zero_grad();
    }
  });
}

TEST(DataParallelSteps, BuffersThatCannotBeWrittenAreErrorsOnEveryRank) {
  run_ranks(2, [](const RankGroup& group) {
    TwoTables module;
    module.register_buffer("wide", torch::ones({1}).expand({3}));
    EXPECT_NE(message_of([&] { DataParallel(module, group); }).find("wide"), std::string::npos);
  });
}

}  // namespace
}  // namespace posenc
