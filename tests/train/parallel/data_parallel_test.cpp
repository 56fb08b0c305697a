// DataParallel: the gradients of 1 to 4 processes against one process that computes the whole
// batch, and the same bits on all of them and in every run.

#include "posenc/train/data_parallel.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "support/compare.h"
#include "support/rank_threads.h"
#include "train/parallel/small_model.h"

namespace posenc::testing {
namespace {

constexpr int kSteps = 4;
constexpr int64_t kBatch = 10, kLength = 5;

struct MatrixPlan {
  SmallModelKind kind;
  int ranks = 1;
  int parts = 1;             // micro-batches an exchange
  bool clears = false;       // zero_grad(false): gradients stay where they are
  int64_t bucket_bytes = 1;  // of which each parameter has its own bucket
};

struct MatrixBatch {
  torch::Tensor ids, targets;
};

std::vector<MatrixBatch> some_batches() {
  torch::manual_seed(5);
  std::vector<MatrixBatch> batches;
  for (int step = 0; step < kSteps; ++step) {
    batches.push_back({torch::randint(kSmallVocab, {kBatch, kLength}, torch::kLong),
                       torch::randint(kSmallVocab, {kBatch, kLength}, torch::kLong)});
  }
  return batches;
}

// Unequal shares of the rows: the last rank of several has none, rank 0 the most of the others.
std::vector<int64_t> bounds_of(int ranks) {
  if (ranks == 1) return {0, kBatch};
  if (ranks == 2) return {0, 7, kBatch};
  std::vector<int64_t> bounds = {0, 6};
  for (int rank = 1; rank + 1 < ranks; ++rank) bounds.push_back(6 + 2 * rank);
  bounds[static_cast<size_t>(ranks) - 1] = kBatch;
  bounds.push_back(kBatch);
  return bounds;
}

// The layer `sometimes` is used by the first row of step 0, by none of step 1, by all afterwards.
bool uses_extra(int step, int64_t row) { return step > 1 || (step == 0 && row == 0); }

// The loss of some rows, weighted to be a part of the whole batch's mean.
torch::Tensor loss_of(SmallModel& model, const MatrixBatch& batch, int64_t row, int step) {
  return model.loss_sum(batch.ids.slice(0, row, row + 1), batch.targets.slice(0, row, row + 1),
                        uses_extra(step, row)) /
         (kBatch * kLength);
}

// backward() for the rows [first, last) in `parts` parts, all but the last within `pause`.
template <typename Pause>
void backward(SmallModel& model, const MatrixBatch& batch, int step, int64_t first, int64_t last,
              int parts, const Pause& pause) {
  for (int part = 0; part < parts; ++part) {
    const int64_t from = first + (last - first) * part / parts;
    const int64_t to = first + (last - first) * (part + 1) / parts;
    [[maybe_unused]] const auto guard = pause(part + 1 < parts);
    torch::Tensor loss;
    for (int64_t row = from; row < to; ++row) {
      const auto own = loss_of(model, batch, row, step);
      loss = loss.defined() ? loss + own : own;
    }
    if (loss.defined()) loss.backward();
  }
}

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// The gradients of every step and then the weights, as computed by `sum_gradients`.
template <typename Sum>
std::vector<NamedTensors> train(SmallModel& model, bool clears, const Sum& sum_gradients) {
  std::vector<NamedTensors> seen;
  for (int step = 0; step < kSteps; ++step) {
    if (step == 1) {
      for (auto& parameter : model.later->parameters()) parameter.set_requires_grad(true);
    }
    sum_gradients(step);
    seen.push_back(gradients(model));
    descend(model);
    model.zero_grad(/*set_to_none=*/!clears);
  }
  NamedTensors weights;
  for (const auto& item : model.named_parameters())
    weights.emplace_back(item.key(), item.value().detach().clone());
  for (const auto& item : model.named_buffers())
    weights.emplace_back(item.key(), item.value().clone());
  seen.push_back(weights);
  return seen;
}

std::vector<NamedTensors> train_alone(const MatrixPlan& plan,
                                      const std::vector<MatrixBatch>& batches) {
  const auto model = small_model(plan.kind, 1);
  const auto none = [](bool) { return 0; };
  return train(*model, plan.clears, [&](int step) {
    backward(*model, batches[static_cast<size_t>(step)], step, 0, kBatch, 1, none);
  });
}

// What each rank saw. Its model begins with other values than rank 0's.
std::vector<std::vector<NamedTensors>> train_together(const MatrixPlan& plan,
                                                      const std::vector<MatrixBatch>& batches) {
  const auto ranks = static_cast<size_t>(plan.ranks);
  std::vector<std::shared_ptr<SmallModel>> models;
  for (size_t rank = 0; rank < ranks; ++rank) models.push_back(small_model(plan.kind, rank + 1));
  const auto bounds = bounds_of(plan.ranks);
  std::vector<std::vector<NamedTensors>> seen(ranks);
  testing::run_ranks(plan.ranks, [&](const RankGroup& group) {
    const auto rank = static_cast<size_t>(group.rank());
    SmallModel& model = *models[rank];
    DataParallel parallel(model, group, DataParallelOptions().bucket_bytes(plan.bucket_bytes));
    const auto pause = [&](bool pauses) {
      return pauses ? std::make_optional(parallel.pause()) : std::nullopt;
    };
    seen[rank] = train(model, plan.clears, [&](int step) {
      backward(model, batches[static_cast<size_t>(step)], step, bounds[rank], bounds[rank + 1],
               plan.parts, pause);
      parallel.finish();
    });
  });
  return seen;
}

// Calls `compare` for the tensors of the same step and name that both have.
template <typename Compare>
void expect_same_tensors(const std::vector<NamedTensors>& a, const std::vector<NamedTensors>& b,
                         const Compare& compare) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t step = 0; step < a.size(); ++step) {
    ASSERT_EQ(a[step].size(), b[step].size());
    for (size_t i = 0; i < a[step].size(); ++i) {
      const auto& [name, x] = a[step][i];
      const auto& y = b[step][i].second;
      EXPECT_EQ(x.defined(), y.defined()) << name << " of step " << step;
      if (!x.defined() || !y.defined()) continue;
      EXPECT_TRUE(compare(x, y)) << name << " of step " << step;
    }
  }
}

void expect_equal_bits(const std::vector<NamedTensors>& a, const std::vector<NamedTensors>& b) {
  expect_same_tensors(a, b, bit_equal);
}

void expect_close(const std::vector<NamedTensors>& a, const std::vector<NamedTensors>& b) {
  expect_same_tensors(a, b, [](const torch::Tensor& x, const torch::Tensor& y) {
    return x.is_floating_point() ? within(Op::RankSums, x, y) : bit_equal(x, y);
  });
}

using MatrixValues = std::tuple<int, bool, bool, int, bool, int64_t>;

struct DataParallelMatrix : ::testing::TestWithParam<MatrixValues> {
  MatrixPlan plan() const {
    const auto [ranks, sparse, tied, parts, clears, bucket_bytes] = GetParam();
    return {{sparse, tied}, ranks, parts, clears, bucket_bytes};
  }
};

std::string matrix_name(const ::testing::TestParamInfo<MatrixValues>& info) {
  const auto [ranks, sparse, tied, parts, clears, bucket_bytes] = info.param;
  return std::to_string(ranks) + (sparse ? "Sparse" : "Dense") + (tied ? "Tied" : "Untied") +
         std::to_string(parts) + (clears ? "Kept" : "Dropped") + std::to_string(bucket_bytes);
}

INSTANTIATE_TEST_SUITE_P(Ranks, DataParallelMatrix,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4), ::testing::Bool(),
                                            ::testing::Bool(), ::testing::Values(1, 3),
                                            ::testing::Bool(), ::testing::Values(1, 1 << 20)),
                         matrix_name);

TEST_P(DataParallelMatrix, HasTheGradientsOfTheWholeBatch) {
  const auto batches = some_batches();
  const auto together = train_together(plan(), batches);
  expect_close(together[0], train_alone(plan(), batches));
  for (size_t rank = 1; rank < together.size(); ++rank) {
    SCOPED_TRACE(c10::str("rank ", rank));
    expect_equal_bits(together[rank], together[0]);
  }
}

TEST(DataParallel, HasTheSameBitsInEveryRun) {
  const auto batches = some_batches();
  for (const bool sparse : {false, true}) {
    const MatrixPlan plan = {{sparse, false}, /*ranks=*/4, /*parts=*/1, /*clears=*/false, 2000};
    const auto first = train_together(plan, batches);
    for (int run = 0; run < 3; ++run) expect_equal_bits(train_together(plan, batches)[0], first[0]);
  }
}

}  // namespace
}  // namespace posenc::testing
