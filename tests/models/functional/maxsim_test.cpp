#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "posenc/models/functional/similarity.h"
#include "support/compare.h"
#include "support/threads.h"

namespace posenc::testing {
namespace {

namespace F = posenc::functional;

MultiVectors texts(const std::vector<int64_t>& lengths, int64_t width) {
  const auto counts = torch::tensor(lengths, torch::kLong);
  return {torch::randn({counts.sum().item<int64_t>(), width}), counts};
}

// sentence_transformers.util.maxsim, pair by pair.
torch::Tensor expected(const MultiVectors& queries, const MultiVectors& documents, bool mean) {
  const auto of = [](const MultiVectors& all) {
    const auto* begin = all.lengths.const_data_ptr<int64_t>();
    return all.embeddings.to(torch::kDouble)
        .split_with_sizes(at::IntArrayRef(begin, static_cast<size_t>(all.lengths.numel())));
  };
  const auto q = of(queries), d = of(documents);
  const auto out = torch::empty({queries.lengths.numel(), documents.lengths.numel()});
  for (size_t i = 0; i < q.size(); ++i) {
    for (size_t j = 0; j < d.size(); ++j) {
      auto score = d[j].size(0) == 0   ? torch::tensor(-1e9)
                   : q[i].size(0) == 0 ? torch::tensor(0.0)
                                       : at::matmul(q[i], d[j].t()).amax(1).sum();
      if (mean) score = score / std::max<int64_t>(q[i].size(0), 1);
      out[static_cast<int64_t>(i)][static_cast<int64_t>(j)] = score.to(torch::kFloat);
    }
  }
  return out;
}

TEST(MaxSim, ScoresEachQueryWithEachDocument) {
  const auto queries = texts({3, 0, 50, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 7}, 24);
  std::vector<int64_t> lengths = {0, 4, 1, 3000};
  for (int64_t i = 0; i < 300; ++i) lengths.push_back(i % 90);
  const auto documents = texts(lengths, 24);
  for (const bool mean : {false, true}) {
    const auto options = F::MaxSimOptions().mean(mean);
    const auto got = F::maxsim(queries, documents, options);
    EXPECT_TRUE(within(Op::LongSums, got, expected(queries, documents, mean)));
    for (const int threads : {1, 2, 4}) {
      const Threads some(threads);
      EXPECT_TRUE(bit_equal(F::maxsim(queries, documents, options), got));
    }
  }
  const MultiVectors none = {torch::empty({0, 24}), torch::empty({0}, torch::kLong)};
  EXPECT_EQ(F::maxsim(queries, none).sizes(), at::IntArrayRef({18, 0}));
}

TEST(MaxSim, NoOtherRowWinsOverNegativeProducts) {
  MultiVectors queries = texts({5, 40}, 8), documents = texts({1, 7, 2}, 8);
  queries.embeddings = queries.embeddings.abs();
  documents.embeddings = -documents.embeddings.abs();
  const auto got = F::maxsim(queries, documents);
  EXPECT_TRUE(got.lt(0).all().item<bool>());
  EXPECT_TRUE(within(Op::Sums, got, expected(queries, documents, false)));
}

TEST(MaxSim, RefusesLengthsThatDoNotAddUp) {
  const auto queries = texts({2}, 4);
  const auto refuses = [&](const char* rule, const torch::Tensor& rows,
                           const torch::Tensor& lengths) {
    EXPECT_NE(message_of([&] { F::maxsim(queries, {rows, lengths}); }).find(rule),
              std::string::npos);
  };
  const auto rows = torch::randn({3, 4});
  refuses("must add up to the number of rows, 3. Got 2", rows, torch::tensor({1, 1}));
  refuses("must lie between 0 and the number of rows, 3. Got -1 at index 1", rows,
          torch::tensor({4 - 1, -1, 1}));
  refuses("one width. Got 4 and 5", torch::randn({3, 5}), torch::tensor({3}));
  EXPECT_THROW(F::maxsim(queries, {rows, torch::tensor({3.0})}), c10::TypeError);
}

}  // namespace
}  // namespace posenc::testing
