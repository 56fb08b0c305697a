// share(): a batch divided among processes, and the weights of what each of them does.
#include "train/shares.h"

#include <ATen/ops/cat.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <set>
#include <vector>

#include "support/compare.h"

namespace posenc::testing {
namespace {

PairBatch some_batch() {
  PairLoader loader({{{3}, {1, 4}},
                     {{3, 4}, {1, 4, 5}},
                     {{3, 4, 5}, {1, 4, 5, 6}},
                     {{5}, {1, 2}},
                     {{6, 7}, {1, 3, 3, 3, 2}}});
  return loader.next();
}

std::multiset<std::vector<int64_t>> rows_of(const torch::Tensor& ids) {
  std::multiset<std::vector<int64_t>> rows;
  for (int64_t i = 0; i < ids.size(0); ++i) {
    std::vector<int64_t> row;
    for (int64_t k = 0; k < ids.size(1); ++k) {
      if (const auto id = ids[i][k].item<int64_t>(); id != 0) row.push_back(id);
    }
    rows.insert(row);
  }
  return rows;
}

TEST(Share, DividesThePairsWithoutTheirPadding) {
  const PairBatch whole = some_batch();
  for (const int64_t ranks : {1, 2, 3, 5, 7}) {
    std::multiset<std::vector<int64_t>> src, tgt;
    int64_t tokens = 0;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const PairBatch part = share(whole, rank, ranks);
      EXPECT_EQ(part.src.size(0), part.tgt.size(0));
      EXPECT_EQ(part.src.size(0), (whole.src.size(0) + ranks - 1 - rank) / ranks);
      EXPECT_EQ(part.pad_id, 0);
      tokens += part.tokens;
      for (const auto& row : rows_of(part.src)) src.insert(row);
      for (const auto& row : rows_of(part.tgt)) tgt.insert(row);
      if (part.src.size(0) == 0) continue;
      EXPECT_TRUE(part.src.select(1, -1).ne(0).any().item<bool>());
      EXPECT_TRUE(part.tgt.select(1, -1).ne(0).any().item<bool>());
      EXPECT_EQ(part.src_is_padded, part.src.eq(0).any().item<bool>());
    }
    EXPECT_EQ(src, rows_of(whole.src));
    EXPECT_EQ(tgt, rows_of(whole.tgt));
    EXPECT_EQ(tokens, whole.tokens);
  }
  EXPECT_ERROR(share(whole, 2, 2), c10::ValueError, "[share] rank must lie in [0, 2). Got 2");
  EXPECT_ERROR(share(whole, -1, 2), c10::ValueError, "[share] rank must lie in [0, 2). Got -1");
}

TEST(Shares, OfOneProcessHaveTheWeightsOfTheirTargets) {
  PairLoader loader({{{3}, {1, 4}}, {{3, 4}, {1, 4, 5, 6}}}, PairLoaderOptions().max_rows(1));
  const std::vector<PairBatch> batches = {loader.next(), loader.next()};
  const auto shares = train::shares_of(batches, {});
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_DOUBLE_EQ(shares[0].factor + shares[1].factor, 1.0);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_DOUBLE_EQ(shares[i].factor, batches[i].tgt.size(1) == 2 ? 0.25 : 0.75);
  }
  train::ShareOptions own;
  own.weight = [](const PairBatch& batch) { return batch.src.size(1) == 1 ? 0.0 : 7.0; };
  for (const auto& [batch, factor] : train::shares_of(batches, own)) {
    EXPECT_EQ(factor, batch.src.size(1) == 1 ? 0.0 : 1.0);
  }
  // The weight of a single batch on a single process is not computed: the function is never called.
  own.weight = [](const PairBatch&) -> double { throw std::runtime_error("asked"); };
  EXPECT_EQ(train::shares_of({batches[0]}, own)[0].factor, 1.0);
}

TEST(Shares, RefuseWeightsThatAreNone) {
  const std::vector<PairBatch> batches = {some_batch(), some_batch()};
  train::ShareOptions options;
  options.weight = [](const PairBatch&) { return -1.0; };
  EXPECT_ERROR(train::shares_of(batches, options), c10::ValueError,
               "[Trainer] a weight must be finite and not negative. Got -1");
  options.weight = [](const PairBatch&) { return 0.0; };
  EXPECT_ERROR(train::shares_of(batches, options), c10::ValueError,
               "[Trainer] the batches of a step must have a target");
}

}  // namespace
}  // namespace posenc::testing
