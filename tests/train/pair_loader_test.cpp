#include "posenc/train/pair_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "support/compare.h"

namespace posenc::testing {
namespace {

constexpr int64_t kPad = 0;

// `count` pairs of various lengths; the first source and target tokens identify the pair.
std::vector<TokenPair> pairs_of(int64_t count) {
  std::vector<TokenPair> pairs;
  for (int64_t i = 0; i < count; ++i) {
    TokenPair pair;
    pair.src.assign(static_cast<std::size_t>(1 + i % 7), 5);
    pair.tgt.assign(static_cast<std::size_t>(2 + i % 5), 6);
    pair.src[0] = pair.tgt[0] = 100 + i;
    pairs.push_back(pair);
  }
  return pairs;
}

// The identities of a batch's pairs, row by row.
std::vector<int64_t> names_of(const PairBatch& batch) {
  const auto first = batch.src.select(1, 0).contiguous();
  return {first.const_data_ptr<int64_t>(), first.const_data_ptr<int64_t>() + first.numel()};
}

std::vector<std::vector<int64_t>> epoch_of(PairLoader& loader) {
  const int64_t epoch = loader.epoch();
  std::vector<std::vector<int64_t>> batches;
  while (loader.epoch() == epoch) batches.push_back(names_of(loader.next()));
  return batches;
}

TEST(PairLoader, EveryPairOnceAnEpoch) {
  for (const auto& options : {PairLoaderOptions().max_rows(8), PairLoaderOptions().max_tokens(40),
                              PairLoaderOptions().max_rows(8).shuffle(false)}) {
    PairLoader loader(pairs_of(101), options);
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::multiset<int64_t> seen;
      for (const auto& batch : epoch_of(loader)) seen.insert(batch.begin(), batch.end());
      ASSERT_EQ(seen.size(), 101u);
      EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 101u);
    }
    EXPECT_EQ(loader.epoch(), 3);
    EXPECT_EQ(loader.batch_in_epoch(), 0);
  }
}

TEST(PairLoader, TheRowsAreThePairs) {
  const auto pairs = pairs_of(50);
  PairLoader loader(pairs, PairLoaderOptions().max_rows(8).pad_id(kPad));
  while (loader.epoch() == 0) {
    const PairBatch batch = loader.next();
    int64_t tokens = 0;
    bool padded = false;
    for (int64_t row = 0; row < batch.src.size(0); ++row) {
      const auto& pair = pairs[static_cast<std::size_t>(batch.src[row][0].item<int64_t>() - 100)];
      for (const auto& [ids, tensor] : {std::pair(pair.src, batch.src), {pair.tgt, batch.tgt}}) {
        const auto length = static_cast<int64_t>(ids.size());
        EXPECT_TRUE(torch::equal(tensor[row].slice(0, 0, length), torch::tensor(ids)));
        EXPECT_TRUE((tensor[row].slice(0, length) == kPad).all().item<bool>());
        tokens += length;
      }
      padded = padded || static_cast<int64_t>(pair.src.size()) < batch.src.size(1);
    }
    EXPECT_EQ(batch.tokens, tokens);
    EXPECT_EQ(batch.src_is_padded, padded);
    EXPECT_EQ(batch.src_mask().is_none(), !padded);
    EXPECT_TRUE(torch::equal(batch.tgt_input(), batch.tgt.slice(1, 0, batch.tgt.size(1) - 1)));
    EXPECT_TRUE(torch::equal(batch.tgt_labels(), batch.tgt.slice(1, 1)));
  }
}

TEST(PairLoader, BatchesAreBoundedAndOfNearlyOneLength) {
  PairLoader rows(pairs_of(700), PairLoaderOptions().max_rows(16));
  int64_t padding = 0, total = 0;
  while (rows.epoch() == 0) {
    const auto batch = rows.next();
    EXPECT_LE(batch.src.size(0), 16);
    total += batch.src.numel() + batch.tgt.numel();
    padding += batch.src.numel() + batch.tgt.numel() - batch.tokens;
  }
  EXPECT_LT(padding * 10, total) << "by chance it would be about a third";

  PairLoader tokens(pairs_of(200), PairLoaderOptions().max_rows(1000).max_tokens(60));
  while (tokens.epoch() == 0) {
    const auto batch = tokens.next();
    EXPECT_LE(batch.src.numel() + batch.tgt.numel(), 60);
  }
}

TEST(PairLoader, TheSeedDecidesAndEpochsDiffer) {
  const auto two_epochs = [](int64_t seed, bool shuffle = true) {
    PairLoader loader(pairs_of(90), PairLoaderOptions().max_rows(4).seed(seed).shuffle(shuffle));
    return std::pair(epoch_of(loader), epoch_of(loader));
  };
  EXPECT_EQ(two_epochs(1), two_epochs(1));
  EXPECT_NE(two_epochs(1), two_epochs(2));
  EXPECT_NE(two_epochs(1), two_epochs(1 + (int64_t{1} << 32))) << "all of its bits";
  EXPECT_NE(two_epochs(1).first, two_epochs(1).second);
  EXPECT_EQ(two_epochs(1, false).first, two_epochs(2, false).second);
  auto order = two_epochs(1).first, sorted = order;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_NE(order, sorted);
}

// The first batches for one seed, which must be the same on all machines.
TEST(PairLoader, TheOrderIsTheSameEverywhere) {
  PairLoader loader(pairs_of(9), PairLoaderOptions().max_rows(3).seed(1));
  const std::vector<std::vector<int64_t>> expected = {
      {102, 103, 108}, {100, 101, 107}, {104, 105, 106}};
  auto batches = epoch_of(loader);
  std::vector<std::vector<int64_t>> sorted;
  for (auto batch : batches) {
    std::sort(batch.begin(), batch.end());
    sorted.push_back(batch);
  }
  EXPECT_EQ(sorted, expected);
}

TEST(PairLoader, GoesOnFromAStateAsIfItHadNeverStopped) {
  const auto options = PairLoaderOptions().max_rows(4).seed(3);
  PairLoader whole(pairs_of(60), options);
  for (int i = 0; i < 40; ++i) whole.next();  // into another epoch
  EXPECT_GT(whole.epoch(), 0);
  const auto state = whole.state();
  PairLoader resumed(pairs_of(60), options);
  resumed.restore(state);
  EXPECT_EQ(resumed.epoch(), whole.epoch());
  EXPECT_EQ(resumed.batch_in_epoch(), whole.batch_in_epoch());
  for (int i = 0; i < 40; ++i) {
    const auto a = whole.next(), b = resumed.next();
    EXPECT_TRUE(torch::equal(a.src, b.src) && torch::equal(a.tgt, b.tgt));
  }
}

TEST(PairLoader, RefusesAStateOfOthers) {
  const auto options = PairLoaderOptions().max_rows(4).seed(3);
  PairLoader loader(pairs_of(60), options);
  loader.next();
  const auto state = loader.state();
  auto pairs = pairs_of(60);
  pairs[59].tgt.back() += 1;
  for (auto& other : {PairLoader(pairs, options), PairLoader(pairs_of(59), options),
                      PairLoader(pairs_of(60), PairLoaderOptions().max_rows(4).seed(4)),
                      PairLoader(pairs_of(60), PairLoaderOptions().max_rows(5).seed(3))}) {
    auto copy = other;
    EXPECT_ERROR(copy.restore(state), c10::ValueError, "must be of the same pairs");
    EXPECT_EQ(copy.batch_in_epoch(), 0);
  }
  PairLoader counted(pairs_of(60), options);
  const auto batches = static_cast<double>(epoch_of(counted).size());
  for (const auto& [name, value, message] : {std::tuple("taken", 1e9, "taken must lie in"),
                                             {"taken", batches, "taken must lie in"},
                                             {"taken", -1.0, "taken must lie in"},
                                             {"epoch", -1.0, "epoch must be a count"}}) {
    auto wrong = state;
    wrong[name] = value;
    EXPECT_ERROR(loader.restore(wrong), c10::ValueError, message);
    wrong.erase(name);
    EXPECT_ERROR(loader.restore(wrong), c10::ValueError, "a state must have");
  }
  EXPECT_EQ(loader.batch_in_epoch(), 1);
}

TEST(PairLoader, SaysWhatIsWrong) {
  EXPECT_ERROR(PairLoader(std::vector<TokenPair>()), c10::ValueError,
               "[PairLoader] at least one pair is required. Got 0");
  EXPECT_ERROR(PairLoader(std::vector{TokenPair{{1}, {}}}), c10::ValueError,
               "Got 1 and 0 tokens for pair 0");
  EXPECT_ERROR(PairLoader(pairs_of(3), PairLoaderOptions().max_rows(0)), c10::ValueError,
               "max_rows must be positive. Got 0");
  EXPECT_ERROR(PairLoader(pairs_of(3), PairLoaderOptions().max_tokens(-1)), c10::ValueError,
               "max_tokens must not be negative. Got -1");
  EXPECT_ERROR(PairLoader(pairs_of(3), PairLoaderOptions().max_tokens(6)), c10::ValueError,
               "at most max_tokens 6 tokens. Got 7 for pair 2");
}

// A process may have a share without labels beside others that have some.
// Texts of a language model.
TEST(PairLoader, TakesTargetsWithoutSources) {
  PairLoader loader({{{}, {3, 4, 5}}, {{}, {6, 7}}}, PairLoaderOptions().pad_id(-1));
  const PairBatch batch = loader.next();
  EXPECT_EQ(batch.src.sizes(), (std::vector<int64_t>{2, 0}));
  EXPECT_FALSE(batch.src_is_padded);
  EXPECT_EQ(batch.tokens, 5);
  for (const int64_t rank : {0, 1}) {
    const PairBatch part = share(batch, rank, 2);
    EXPECT_EQ(part.src.sizes(), (std::vector<int64_t>{1, 0}));
    EXPECT_EQ(part.tokens, part.tgt.numel());
  }
  EXPECT_ERROR(PairLoader({{{}, {3, 4}}, {{5}, {6, 7}}}), c10::ValueError,
               "must not be empty, but for the sources of all. Got 1 and 2 tokens for pair 1");
  EXPECT_ERROR(PairLoader({{{5}, {6, 7}}, {{}, {3, 4}}}), c10::ValueError, "for pair 1");
}

TEST(PairBatch, AShareHasAColumnOfLabelsIfTheWholeHas) {
  PairBatch whole;
  whole.src = torch::tensor({{3, 4}, {5, 0}});
  whole.tgt = torch::tensor({{1, 4, 2}, {1, 0, 0}});
  EXPECT_TRUE(share(whole, 0, 2).tgt.equal(torch::tensor({{1, 4, 2}})));
  EXPECT_TRUE(share(whole, 1, 2).tgt.equal(torch::tensor({{1, 0}})));
  EXPECT_TRUE(share(whole, 1, 2).src.equal(torch::tensor({{5}})));
  EXPECT_EQ(share(whole, 1, 2).tgt_labels().sizes(), torch::IntArrayRef({1, 1}));
}

// Targets of one token have no labels, and the mean over none is NaN.
TEST(PairBatch, SaysThatATargetOfOneTokenHasNoLabels) {
  PairBatch batch;
  batch.src = torch::tensor({{5, 6}, {7, 8}});
  batch.tgt = torch::tensor({{1}, {1}});
  const char* why = "[PairBatch] some target must have two tokens, its begin and what follows";
  EXPECT_ERROR(batch.tgt_input(), c10::ValueError, why);
  EXPECT_ERROR(batch.tgt_labels(), c10::ValueError, why);
}

TEST(PairLoader, RefusesATargetWithoutLabels) {
  EXPECT_ERROR(PairLoader(std::vector<TokenPair>{{{5, 6}, {1, 2}}, {{7, 8}, {1}}}), c10::ValueError,
               "[PairLoader] a target must have two tokens, its begin and what follows. Got 1 for "
               "pair 1; leave out pairs with nothing to predict");
}

// It would be masked in the source and not learnt in the target, beside longer pairs only.
TEST(PairLoader, RefusesThePaddingIdInAPair) {
  const std::vector<TokenPair> pairs = {{{5, 6}, {1, 2}}, {{5, 0, 6}, {1, 2}}};
  EXPECT_ERROR(
      PairLoader(std::vector<TokenPair>(pairs)), c10::ValueError,
      "[PairLoader] a pair must not contain pad_id, 0, which is masked and not learnt. Got "
      "it as token 1 of the source of pair 1; give another pad_id");
  EXPECT_ERROR(
      PairLoader(std::vector<TokenPair>{{{5, 6}, {1, 9, 2}}}, PairLoaderOptions().pad_id(9)),
      c10::ValueError, "Got it as token 1 of the target of pair 0");
  PairLoader other(pairs, PairLoaderOptions().pad_id(9));
  other.next();
}

// As in Marian, Pegasus and T5. The begin of a target is no label, so nothing is lost.
TEST(PairLoader, TakesThePaddingIdAsTheBeginOfATarget) {
  const std::vector<TokenPair> pairs = {{{5, 6}, {0, 3, 2}}, {{7}, {0, 2}}};
  PairLoader loader(pairs, PairLoaderOptions().shuffle(false));
  const PairBatch batch = loader.next();
  EXPECT_EQ(batch.tokens, 8);
  EXPECT_TRUE(bit_equal(batch.tgt, torch::tensor({{0, 2, 0}, {0, 3, 2}})));
  EXPECT_EQ(share(batch, 0, 2).tokens + share(batch, 1, 2).tokens, batch.tokens);
  EXPECT_TRUE(bit_equal(share(batch, 0, 2).tgt, torch::tensor({{0, 2}})));
  EXPECT_ERROR(PairLoader(std::vector<TokenPair>{{{5}, {0, 3, 0}}}), c10::ValueError,
               "Got it as token 2 of the target of pair 0");
}

}  // namespace
}  // namespace posenc::testing
