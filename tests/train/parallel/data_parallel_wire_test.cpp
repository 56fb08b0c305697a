// What DataParallel sends: as many messages and bytes as its buckets need, and nothing else.

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cstdint>

#include "posenc/train/data_parallel.h"
#include "support/counting_backend.h"
#include "train/parallel/small_model.h"

namespace posenc::testing {
namespace {

using testing::Traffic;

constexpr int64_t kSlotBytes = 64;       // bytes that each slot is rounded up to
constexpr int64_t kExtraBytes = 64 * 4;  // numbers of finish()
constexpr int64_t kCountBytes = 2 * 4;   // a parameter: processes of either kind of gradient
constexpr int64_t kFailedBytes = 4;      // processes that failed

int64_t rounded(int64_t bytes) { return (bytes + kSlotBytes - 1) / kSlotBytes * kSlotBytes; }

torch::Tensor wire_loss(SmallModel& model) {
  const auto ids = torch::tensor({{1, 2, 2, 30, 31}});
  return model.loss_sum(ids, ids, /*extra=*/true);
}

// One allreduce of all slots, the counts and the extra numbers. Nothing for the frozen layer, and
// nothing for the one without gradients once that is known.
TEST(DataParallelWire, SendsEachGradientOnce) {
  testing::run_counted_ranks(4, [](const RankGroup& group) {
    SmallModel model({});
    DataParallel parallel(model, group, DataParallelOptions().bucket_bytes(1 << 20));
    int64_t slot_bytes = 0, parameters = 0;
    for (const auto& parameter : model.parameters()) {
      ++parameters;
      if (parameter.requires_grad()) slot_bytes += rounded(4 * parameter.numel());
    }
    for (int step = 0; step < 3; ++step) {
      if (step == 1) {
        for (const auto& parameter : model.never->parameters())
          slot_bytes -= rounded(4 * parameter.numel());
      }
      testing::reset_traffic(group);
      wire_loss(model).backward();
      parallel.finish(torch::ones({3}));
      const Traffic traffic = testing::traffic(group);
      EXPECT_EQ(traffic.size(), 1) << "allreduce alone";
      EXPECT_EQ(traffic.at("all_reduce").calls, 1);
      EXPECT_EQ(traffic.at("all_reduce").bytes,
                slot_bytes + rounded(kCountBytes * parameters + kFailedBytes + kExtraBytes));
      model.zero_grad();
    }
  });
}

TEST(DataParallelWire, SendsWhileBackwardRuns) {
  testing::run_counted_ranks(2, [](const RankGroup& group) {
    SmallModel model({});
    DataParallel parallel(model, group, DataParallelOptions().bucket_bytes(1));
    for (int step = 0; step < 2; ++step) {
      testing::reset_traffic(group);
      wire_loss(model).backward();
      const Traffic traffic = testing::traffic(group);
      parallel.finish();
      model.zero_grad();
      if (step == 0) continue;  // the layer without gradients holds up the others once
      EXPECT_EQ(traffic.at("all_reduce").calls, 5) << "all but the last parameter";
    }
  });
}

TEST(DataParallelWire, SendsNothingDuringAPause) {
  testing::run_counted_ranks(2, [](const RankGroup& group) {
    SmallModel model({});
    DataParallel parallel(model, group, DataParallelOptions().bucket_bytes(1));
    testing::reset_traffic(group);
    {
      const auto pause = parallel.pause();
      wire_loss(model).backward();
    }
    EXPECT_TRUE(testing::traffic(group).empty());
    wire_loss(model).backward();
    parallel.finish();
    EXPECT_EQ(testing::traffic(group).at("all_reduce").calls, 8);
  });
}

// Only the four rows of the sparse table's gradient that have a token are sent, and from the second
// step on no zeros in its place.
TEST(DataParallelWire, SendsOnlyTheRowsOfASparseGradient) {
  testing::run_counted_ranks(4, [](const RankGroup& group) {
    SmallModel model({/*sparse=*/true, /*tied=*/false});
    for (const auto& parameter : model.never->parameters()) parameter.set_requires_grad(false);
    DataParallel parallel(model, group);
    Traffic steps[2];
    for (Traffic& step : steps) {
      testing::reset_traffic(group);
      wire_loss(model).backward();
      parallel.finish();
      step = testing::traffic(group);
      model.zero_grad();
    }
    EXPECT_EQ(steps[0].at("all_reduce").bytes - steps[1].at("all_reduce").bytes,
              rounded(4 * kSmallVocab * kSmallWidth));
    const auto& gathered = steps[1].at("all_gather");
    EXPECT_EQ(gathered.calls, 3) << "counts, ids, rows";
    EXPECT_EQ(gathered.bytes, 8 + 4 * 8 + 4 * 4 * kSmallWidth);
  });
}

}  // namespace
}  // namespace posenc::testing
