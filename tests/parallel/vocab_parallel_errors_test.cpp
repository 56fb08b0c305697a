// Arguments that a split vocabulary refuses: on every process, and before any data are sent, so
// that the group can be used afterwards.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "parallel/collectives.h"
#include "posenc/functional/vocab_parallel.h"
#include "support/compare.h"
#include "support/rank_threads.h"

namespace posenc {
namespace {

using testing::message_of;

namespace F = posenc::functional;

constexpr int64_t kVocab = 7, kWidth = 4;

/// Valid arguments of one process.
struct Valid {
  explicit Valid(const RankGroup& group)
      : shard(VocabShard::of(kVocab, group.rank(), group.size())) {
    table = at::ones({shard.rows(), kWidth});
    logits = at::ones({2 * group.size(), shard.rows()});
  }
  VocabShard shard;
  at::Tensor ids = at::tensor({0, 6}, at::kLong);
  at::Tensor table, logits;
};

F::VocabParallelEmbeddingFuncOptions of_tokens(RankTokens tokens) {
  return F::VocabParallelEmbeddingFuncOptions().tokens(tokens);
}

void expect_usable(const RankGroup& group) {
  const at::Tensor one = at::ones({1});
  parallel::all_reduce(group, one, "test");
  EXPECT_EQ(one.item<double>(), group.size());
}

/// With Same arguments all processes throw the same; with Own arguments, of which only rank 1's are
/// wrong, rank 1 throws that and the others name rank 1.
template <typename Error, typename Call>
void expect_refused(const std::string& message, const Call& call) {
  for (const auto tokens : {RankTokens::Same, RankTokens::Own}) {
    testing::run_ranks(3, [&](const RankGroup& group) {
      const bool wrong = tokens == RankTokens::Same || group.rank() == 1;
      const auto act = [&] { call(group, Valid(group), tokens, wrong); };
      if (wrong) {
        EXPECT_THROW(act(), Error);
        expect_usable(group);
        EXPECT_PRED_FORMAT2(::testing::IsSubstring, message, message_of(act));
      } else {
        for (int times = 0; times < 2; ++times) {
          try {
            act();
            ADD_FAILURE() << "no error on rank " << group.rank();
          } catch (const GroupError& error) {
            EXPECT_EQ(error.code(), GroupErrorCode::PeerFailed);
            EXPECT_EQ(error.rank(), group.rank());
            EXPECT_PRED_FORMAT2(
                ::testing::IsSubstring,
                c10::str("rank ", group.rank(), " of 3: rank 1 was given invalid arguments"),
                error.what());
          }
          if (times == 0) expect_usable(group);
        }
      }
      expect_usable(group);
    });
  }
}

TEST(VocabParallelErrors, AnIdOutOfRangeOnAnyProcess) {
  for (const int64_t id : {int64_t{-1}, kVocab}) {
    expect_refused<c10::IndexError>(
        c10::str("[TokenEmbedding] every id must lie in [0, vocab_size) = [0, 7). Got ", id,
                 " at index [1]"),
        [&](const RankGroup& group, Valid v, RankTokens tokens, bool wrong) {
          if (wrong) v.ids[1] = id;
          F::vocab_parallel_embedding(v.ids, v.table, v.shard, group, of_tokens(tokens));
        });
  }
}

TEST(VocabParallelErrors, ATargetOutOfRangeOnAnyProcess) {
  for (const int64_t id : {int64_t{-1}, kVocab}) {
    expect_refused<c10::IndexError>(
        c10::str("[vocab_parallel_cross_entropy] every target must lie in [0, vocab_size) = "
                 "[0, 7). Got ",
                 id, " at index [1]"),
        [&](const RankGroup& group, Valid v, RankTokens tokens, bool wrong) {
          if (wrong) v.ids[1] = id;
          const at::Tensor logits = tokens == RankTokens::Own ? v.logits : v.logits.narrow(0, 0, 2);
          F::vocab_parallel_cross_entropy(logits, v.ids, v.shard, group, {}, tokens);
        });
  }
}

TEST(VocabParallelErrors, WrongIdsWeightsAndPadding) {
  const auto call =
      [](const RankGroup& group, const Valid& v, RankTokens tokens,
         const std::function<void(Valid&, F::VocabParallelEmbeddingFuncOptions&)>& spoil,
         bool wrong) {
        Valid mine = v;
        auto options = of_tokens(tokens);
        if (wrong) spoil(mine, options);
        F::vocab_parallel_embedding(mine.ids, mine.table, mine.shard, group, options);
      };
  const auto expect = [&](auto error, const std::string& message, const auto& spoil) {
    expect_refused<decltype(error)>(
        message, [&](const RankGroup& group, const Valid& v, RankTokens tokens, bool wrong) {
          call(group, v, tokens, spoil, wrong);
        });
  };
  const c10::ValueError value({}, "");
  const c10::TypeError type({}, "");
  using Options = F::VocabParallelEmbeddingFuncOptions;
  expect(type, "[TokenEmbedding] ids must be integers. Got Float",
         [](Valid& v, Options&) { v.ids = v.ids.to(at::kFloat); });
  expect(value, "[vocab_parallel_embedding] weight must be the shard's rows, (",
         [](Valid& v, Options&) { v.table = at::ones({kVocab, kWidth}); });
  expect(value, "D). Got [12]", [](Valid& v, Options&) { v.table = at::ones({12}); });
  expect(value, "[TokenEmbedding] padding_idx must lie in [-7, 7). Got 7",
         [](Valid&, Options& o) { o.padding_idx(7); });
  expect(value, "[vocab_parallel_embedding] shard must be VocabShard::of(7, ",
         [](Valid& v, Options&) { v.shard.first += 1; });
}

TEST(VocabParallelErrors, WrongInputsOfTheOutputLayer) {
  const auto expect = [](auto error, const std::string& message, const at::Tensor& x,
                         const at::Tensor& bias) {
    expect_refused<decltype(error)>(
        message, [&](const RankGroup& group, const Valid& v, RankTokens tokens, bool wrong) {
          F::vocab_parallel_output(wrong ? x : at::ones({2, kWidth}), v.table,
                                   wrong ? bias : at::Tensor(), group, tokens);
        });
  };
  const c10::ValueError value({}, "");
  const c10::TypeError type({}, "");
  expect(value,
         "[vocab_parallel_output] x must be (..., D) and weight (last - first, D), D > 0. "
         "Got [2, 5] and [",
         at::ones({2, 5}), {});
  expect(value, "Got [] and [", at::ones({}), {});
  expect(value, "[vocab_parallel_output] bias must be (", at::ones({2, kWidth}), at::ones({9}));
  expect(type, "[vocab_parallel_output] x must be real numbers. Got Long",
         at::ones({2, kWidth}, at::kLong), {});
}

TEST(VocabParallelErrors, WrongInputsOfTheLoss) {
  struct Arguments {
    at::Tensor logits, targets;
    VocabShard shard;
    F::TokenCrossEntropyFuncOptions options;
  };
  const auto expect = [](auto error, const std::string& message, const auto& spoil) {
    expect_refused<decltype(error)>(
        message, [&](const RankGroup& group, const Valid& v, RankTokens tokens, bool wrong) {
          Arguments a{
              tokens == RankTokens::Own ? v.logits : v.logits.narrow(0, 0, 2), v.ids, v.shard, {}};
          if (wrong) spoil(a);
          F::vocab_parallel_cross_entropy(a.logits, a.targets, a.shard, group, a.options, tokens);
        });
  };
  const c10::ValueError value({}, "");
  const c10::TypeError type({}, "");
  const std::string loss = "[vocab_parallel_cross_entropy] ";
  expect(value, loss + "label_smoothing must lie in [0, 1]. Got 1.5",
         [](Arguments& a) { a.options.label_smoothing(1.5); });
  expect(value, loss + "shard must be VocabShard::of(7, ", [](Arguments& a) { a.shard.last += 1; });
  expect(value, loss + "logits must be the shard's columns, (..., ",
         [](Arguments& a) { a.logits = at::ones({2, kVocab}); });
  expect(type, loss + "logits must be real numbers. Got Long",
         [](Arguments& a) { a.logits = a.logits.to(at::kLong); });
  expect(type, loss + "targets must be ids, int64. Got Float",
         [](Arguments& a) { a.targets = a.targets.to(at::kFloat); });
}

TEST(VocabParallelErrors, LogitsOfOtherTokens) {
  testing::run_ranks(2, [](const RankGroup& group) {
    const Valid v(group);
    EXPECT_ERROR(F::vocab_parallel_cross_entropy(v.logits, v.ids, v.shard, group), c10::ValueError,
                 " and targets (...). Got [4, ");
    EXPECT_ERROR(F::vocab_parallel_cross_entropy(v.logits.narrow(0, 0, 3), v.ids, v.shard, group,
                                                 {}, RankTokens::Own),
                 c10::ValueError, "logits must be those of all processes' tokens, (4, ");
    expect_usable(group);
  });
}

TEST(VocabParallelErrors, LogitsOfOtherTokensOnOneProcess) {
  testing::run_ranks(3, [](const RankGroup& group) {
    const Valid v(group);
    const bool wrong = group.rank() == 1;
    const at::Tensor logits = wrong ? v.logits.narrow(0, 0, 3) : v.logits;
    const auto act = [&] {
      F::vocab_parallel_cross_entropy(logits, v.ids, v.shard, group, {}, RankTokens::Own);
    };
    if (wrong) {
      EXPECT_ERROR(act(), c10::ValueError,
                   "logits must be those of all processes' tokens, (6, ...). Got 3 rows");
    } else {
      EXPECT_ERROR(act(), GroupError,
                   c10::str("rank ", group.rank(), " of 3: rank 1 was given invalid arguments"));
    }
    expect_usable(group);
  });
}

TEST(VocabParallelErrors, ASecondDerivativeOfTheLoss) {
  testing::run_ranks(2, [](const RankGroup& group) {
    const Valid v(group);
    const at::Tensor logits = v.logits.narrow(0, 0, 2).clone().requires_grad_();
    const at::Tensor loss = F::vocab_parallel_cross_entropy(logits, v.ids, v.shard, group);
    EXPECT_ERROR(loss.backward({}, std::nullopt, /*create_graph=*/true), c10::ValueError,
                 "[vocab_parallel_cross_entropy] the gradient cannot be differentiated again");
  });
}

}  // namespace
}  // namespace posenc
