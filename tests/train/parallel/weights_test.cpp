// Weights that the processes of a group save together: the file that one process writes.
#include <gtest/gtest.h>

#include <string>

#include "posenc/train/save.h"
#include "posenc/weights/load.h"
#include "support/rank_threads.h"
#include "weights/support.h"
#include "weights/tied_model.h"

namespace posenc::testing {
namespace {

using testing::run_ranks;

TEST(GroupWeights, AreTheFileOfOneProcess) {
  const TempDir dir;
  TiedModel whole;
  whole.fill(0.5);
  save_weights(whole, dir / "whole");
  run_ranks(3, [&](const RankGroup& group) {
    TiedModel model;
    model.fill(group.rank() == 0 ? 0.5 : 7.0);  // of which rank 0's count
    save_weights(group, model, dir / "c");
    save_weights(group, model, dir / "c.pt");
  });
  EXPECT_EQ(read_bytes(dir / "c"), read_bytes(dir / "whole"));
  TiedModel loaded;
  load_weights(loaded, dir / "c.pt");
  EXPECT_TRUE(all_bits(loaded) == all_bits(whole));
  EXPECT_EQ(dir.entries(), 3u);
}

TEST(GroupWeights, ThatRankZeroCannotWriteAreAnErrorOnAll) {
  const TempDir dir;
  run_ranks(2, [&](const RankGroup& group) {
    TiedModel model;
    for (const char* name : {"missing/c", "missing/c.pt"}) {
      try {
        save_weights(group, model, dir / name);
        ADD_FAILURE() << "saved by rank " << group.rank();
      } catch (const WeightsError& error) {
        EXPECT_EQ(group.rank(), 0);
        EXPECT_EQ(error.code(), WeightsErrorCode::NotFound);
      } catch (const GroupError& error) {
        EXPECT_EQ(group.rank(), 1);
        EXPECT_EQ(error.code(), GroupErrorCode::PeerFailed);
      }
    }
  });
  EXPECT_EQ(dir.entries(), 0u);
}

TEST(GroupWeights, OfDifferentModelsAreRefused) {
  const TempDir dir;
  run_ranks(2, [&](const RankGroup& group) {
    TiedModel model;
    if (group.rank() == 1) model.register_buffer("more", at::zeros({2}));
    try {
      save_weights(group, model, dir / "c");
      ADD_FAILURE() << "saved";
    } catch (const GroupError& error) {
      EXPECT_EQ(error.code(), GroupErrorCode::Disagree);
      EXPECT_CONTAINS(error.what(), "more");
    }
  });
  EXPECT_EQ(dir.entries(), 0u);
}

}  // namespace
}  // namespace posenc::testing
