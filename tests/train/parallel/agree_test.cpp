// Ranks that differ get an error on every rank, before the engine sees sizes that differ.
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <optional>

#include "support/rank_threads.h"
#include "train/parallel/collectives.h"

namespace posenc {
namespace {

using testing::run_ranks;

/// The GroupError that `call` throws, if it throws one.
template <typename Call>
std::optional<GroupError> group_error(const Call& call) {
  try {
    call();
  } catch (const GroupError& error) {
    return error;
  }
  return std::nullopt;
}

#define EXPECT_GROUP_ERROR(error, expected_code, group, text)                        \
  do {                                                                               \
    ASSERT_TRUE(error) << "no error";                                                \
    EXPECT_EQ(error->code(), expected_code) << error->what();                        \
    EXPECT_EQ(error->rank(), (group).rank());                                        \
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, text, error->what());                \
    EXPECT_PRED_FORMAT2(::testing::IsSubstring,                                      \
                        "[caller] rank " + std::to_string((group).rank()) + " of " + \
                            std::to_string((group).size()) + ": ",                   \
                        error->what());                                              \
  } while (false)

class Agree : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Agree, ::testing::Values(2, 3));

struct Difference {
  const char* name;
  const char* mine;    ///< of the rank that differs
  const char* others;  ///< of all others
  const char* shown;   ///< the line of the one that differs
  const char* shown_of_others;
};

constexpr Difference kDifferences[] = {
    {"a name", "posenc 1\nb f32 (2)\n", "posenc 1\na f32 (2)\n", "`b f32 (2)`", "`a f32 (2)`"},
    {"a shape of the same length", "a (2)\nb (3)", "a (2)\nb (4)", "`b (3)`", "`b (4)`"},
    {"a dtype", "a bf16 (2)\n", "a float32 (2)\n", "`a bf16 (2)`", "`a float32 (2)`"},
    {"one more parameter", "a\nb\n", "a\n", "`b`", "nothing"},
    {"one parameter less", "a\n", "a\nb\n", "nothing", "`b`"},
    {"no parameter", "", "a\n", "nothing", "`a`"},
    {"posenc's version", "posenc 2\na", "posenc 1\na", "`posenc 2`", "`posenc 1`"},
};

TEST_P(Agree, EveryRankLearnsWhatDiffers) {
  const int size = GetParam();
  for (const Difference& difference : kDifferences) {
    for (int odd = 0; odd < size; ++odd) {
      run_ranks(size, [&](const RankGroup& group) {
        const char* text = group.rank() == odd ? difference.mine : difference.others;
        const auto error = group_error([&] { parallel::agree_on(group, text, "caller"); });
        const std::string of_rank_0 = odd == 0 ? difference.shown : difference.shown_of_others;
        const std::string of_other = odd == 0 ? difference.shown_of_others : difference.shown;
        EXPECT_GROUP_ERROR(error, GroupErrorCode::Disagree, group,
                           " has " + of_other + ", rank 0 has " + of_rank_0);
        if (group.rank() > 0 && odd > 0) {
          EXPECT_PRED_FORMAT2(::testing::IsSubstring, "Rank " + std::to_string(odd) + " has",
                              error->what());
        }
        // All have left the exchange: the group still works.
        EXPECT_NO_THROW(parallel::agree_on(group, "the same", "caller"));
      });
    }
  }
}

TEST_P(Agree, ALongLineIsShortenedInTheMessage) {
  run_ranks(GetParam(), [](const RankGroup& group) {
    const std::string text(100000, group.rank() == 1 ? 'b' : 'a');
    const auto error = group_error([&] { parallel::agree_on(group, text, "caller"); });
    EXPECT_GROUP_ERROR(error, GroupErrorCode::Disagree, group, std::string(200, 'b') + "...`");
    EXPECT_LT(std::string(error->what()).size(), 1000u);
  });
}

TEST_P(Agree, WorkThatFailsOnOneRankFailsOnAll) {
  const int size = GetParam();
  for (int failing = 0; failing < size; ++failing) {
    run_ranks(size, [&](const RankGroup& group) {
      const auto work = [&] {
        TORCH_CHECK_INDEX(group.rank() != failing, "[embed] id 7 is out of range");
      };
      if (group.rank() == failing) {
        EXPECT_THROW(parallel::all_or_none(group, work, "caller"), c10::IndexError);
      } else {
        const auto error = group_error([&] { parallel::all_or_none(group, work, "caller"); });
        EXPECT_GROUP_ERROR(
            error, GroupErrorCode::PeerFailed, group,
            "rank " + std::to_string(failing) + " failed. Got: [embed] id 7 is out of range");
      }
      EXPECT_NO_THROW(parallel::all_or_none(group, nullptr, "caller"));
      EXPECT_NO_THROW(parallel::all_or_none(group, [] {}, "caller"));
    });
  }
}

TEST_P(Agree, EveryFailingRankKeepsItsOwnError) {
  run_ranks(GetParam(), [](const RankGroup& group) {
    const auto work = [&] {
      if (group.rank() == 0) throw std::runtime_error("");  // no text: still a failure
      if (group.rank() == 1) throw 5;                       // no std::exception
    };
    if (group.rank() == 0) {
      EXPECT_THROW(parallel::all_or_none(group, work, "caller"), std::runtime_error);
    } else if (group.rank() == 1) {
      EXPECT_THROW(parallel::all_or_none(group, work, "caller"), int);
    } else {
      const auto error = group_error([&] { parallel::all_or_none(group, work, "caller"); });
      EXPECT_GROUP_ERROR(error, GroupErrorCode::PeerFailed, group, "rank 0 failed. Got: ");
    }
  });
}

TEST_P(Agree, OnlyRankZeroWorks) {
  run_ranks(GetParam(), [](const RankGroup& group) {
    bool written = false;
    const std::function<void()> write = [&] { written = true; };
    parallel::all_or_none(group, group.rank() == 0 ? write : nullptr, "caller");
    EXPECT_EQ(written, group.rank() == 0);
  });
}

// In two different functions, the messages of which have different sizes.
TEST_P(Agree, RanksInDifferentFunctionsAreNamedOnAll) {
  run_ranks(GetParam(), [](const RankGroup& group) {
    const auto pairs = {
        std::pair<int, int>{0, 1}, {0, 2}, {1, 2}, {1, 0}, {2, 0}, {2, 1}, {0, 3}, {3, 0}};
    const auto call = [&](int which) {
      if (which == 0) parallel::agree_on(group, "text", "save_checkpoint");
      if (which == 1) parallel::all_or_none(group, [] {}, "load_checkpoint");
      if (which == 2) parallel::all_gather_numbers(group, 3, "DataParallel");
      if (which == 3) parallel::agree_on(group, "text", "Trainer");
    };
    const std::string names[] = {
        "save_checkpoint and compares its model or options",
        "load_checkpoint and reports whether it failed",
        "DataParallel and sends a number",
        "Trainer and compares its model or options",
    };
    for (const auto& [of_rank_0, of_rank_1] : pairs) {
      const auto error =
          group_error([&, a = of_rank_0, b = of_rank_1] { call(group.rank() == 1 ? b : a); });
      ASSERT_TRUE(error) << names[of_rank_0] << ", " << names[of_rank_1];
      EXPECT_EQ(error->code(), GroupErrorCode::Disagree);
      EXPECT_PRED_FORMAT2(
          ::testing::IsSubstring,
          "all processes must call the same functions in the same order. Got: rank 0 is in " +
              names[of_rank_0] + ", rank 1 is in " + names[of_rank_1],
          error->what());
      EXPECT_NO_THROW(parallel::agree_on(group, "the same", "caller")) << "the group still works";
    }
  });
}

TEST(Agree, ASingleProcessThrowsItsOwnError) {
  EXPECT_THROW(parallel::all_or_none({}, [] { throw std::bad_alloc(); }, "caller"), std::bad_alloc);
}

}  // namespace
}  // namespace posenc
