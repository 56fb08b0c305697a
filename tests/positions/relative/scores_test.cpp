#include "posenc/positions/relative/scores.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "posenc/positions/relative/term.h"
#include "support/compare.h"
#include "support/seed.h"

namespace posenc {
namespace {

using relative::Clamp;
using relative::Contract;
using relative::Masking;
using relative::ScaleBy;
using relative::ScaleOf;
using relative::Scoring;
using relative::Shift;
using testing::bit_equal;

// transformers' own: a column of zeros, and another shape of the same memory.
torch::Tensor padded_shift(const torch::Tensor& x, int64_t keys) {
  const int64_t queries = x.size(2), rows = x.size(3);
  const auto padded = torch::constant_pad_nd(x, {1, 0});
  return padded.view({x.size(0), x.size(1), rows + 1, queries})
      .slice(2, 1)
      .reshape({x.size(0), x.size(1), queries, rows})
      .slice(3, 0, keys);
}

TEST(RelativeShift, IsTheShiftByPaddingWithoutACopy) {
  const auto x = torch::randn({2, 3, 5, 9});
  const auto shifted = relative_shift(x, 5, 4);
  EXPECT_TRUE(bit_equal(shifted.contiguous(), padded_shift(x, 5).contiguous()));
  EXPECT_EQ(shifted.data_ptr(), x.slice(3, 4).data_ptr());
}

TEST(RelativeShift, HasTheGradientOfEachEntry) {
  const auto x = torch::randn({1, 2, 4, 7}, torch::kDouble).requires_grad_();
  const auto same = x.detach().clone().requires_grad_();
  const auto cotangent = torch::randn({1, 2, 4, 4}, torch::kDouble);
  relative_shift(x, 4, 3).backward(cotangent);
  padded_shift(same, 4).backward(cotangent);
  EXPECT_TRUE(bit_equal(x.grad(), same.grad()));
}

TEST(RelativeShift, Errors) {
  EXPECT_ERROR(relative_shift(torch::zeros({1, 5, 9}), 6, 4), c10::ValueError, "must reach");
  EXPECT_ERROR(relative_shift(torch::zeros({1, 5, 9}), 5, 3), c10::ValueError, "must reach");
  EXPECT_ERROR(relative_shift(torch::zeros({1, 5, 9}), 5, std::numeric_limits<int64_t>::max()),
               c10::ValueError, "must reach");
  EXPECT_ERROR(relative_shift(torch::zeros({1, 5, 9}), 5, 4, std::numeric_limits<int64_t>::max()),
               c10::ValueError, "must reach");
  EXPECT_ERROR(relative_shift(torch::zeros({4}), 2, 1), c10::ValueError, "(..., Q, R)");
}

TEST(RelativeTerm, IsTheProductWithTheRowOfEachPair) {
  torch::manual_seed(testing::seed(3));
  const auto q = torch::randn({2, 3, 5, 4}, torch::kDouble),
             k = torch::randn({2, 3, 7, 4}, torch::kDouble);
  const Clamp index{3, 2};
  const auto rows = torch::randn({6, 4}, torch::kDouble);
  const auto of_pairs = torch::embedding(
      rows, relative_index(torch::arange(2, 7), torch::arange(7), index));  // (Q, K, D)
  const auto near = [](const torch::Tensor& a, const torch::Tensor& b) {
    return a.sizes() == b.sizes() && (a - b).abs().max().item<double>() < 1e-12;
  };
  EXPECT_TRUE(near(relative_term(q, rows, 7, index, Contract::Query, 2),
                   torch::einsum("bhqd,qkd->bhqk", {q, of_pairs})));
  EXPECT_TRUE(near(relative_term(k, rows, 5, index, Contract::Key, 2),
                   torch::einsum("bhkd,qkd->bhqk", {k, of_pairs})));
  // With rows for all distances the view is the same as the look-up.
  const auto all = torch::randn({3, 11, 4}, torch::kDouble);
  const auto term = relative_term(q, all, 7, Shift{4});
  const auto looked_up = torch::gather(
      torch::matmul(q, all.transpose(1, 2)), 3,
      relative_index(torch::arange(5), torch::arange(7), Shift{4}).expand({2, 3, 5, 7}));
  EXPECT_TRUE(bit_equal(term.contiguous(), looked_up));
}

TEST(RelativeTerm, Errors) {
  const auto q = torch::zeros({2, 3, 5, 4});
  EXPECT_ERROR(relative_term(q[0], torch::zeros({6, 4}), 5, Clamp{3, 2}), c10::ValueError,
               "x must be (B, H, L, D)");
  EXPECT_ERROR(relative_term(q, torch::zeros({6, 5}), 5, Clamp{3, 2}), c10::ValueError,
               "rows must be (R, 4)");
  EXPECT_ERROR(relative_term(q, torch::zeros({5, 4}), 5, Clamp{3, 2}), c10::ValueError,
               "rows must have 6 rows");
  EXPECT_ERROR(relative_term(q, torch::zeros({6, 4}, torch::kDouble), 5, Clamp{3, 2}),
               c10::TypeError, "the same dtype. Got Float and Double");
  EXPECT_ERROR(relative_term(q, torch::zeros({2, 6, 4}), 5, Clamp{3, 2}), c10::ValueError,
               "of the heads and sequences of x, or of one. Got [2, 6, 4] beside [2, 3, 5, 4]");
  EXPECT_ERROR(relative_term(q, torch::zeros({6, 4}), 5, Clamp{3, 2}, Contract::Query, -1),
               c10::ValueError, "offset must not be negative");
  for (const Contract contract : {Contract::Query, Contract::Key})
    EXPECT_ERROR(relative_term(q, torch::zeros({8, 4}), 5, Shift{4}, contract), c10::ValueError,
                 "must reach");
}

struct Inputs {
  torch::Tensor q = torch::randn({2, 3, 5, 6}), k = torch::randn({2, 3, 7, 6});
  torch::Tensor term = torch::randn({1, 3, 5, 7}), mask = torch::randn({2, 1, 5, 7});
  torch::Tensor product() const { return torch::matmul(q, k.transpose(-1, -2)); }
};

TEST(RelativeScores, AreOfTheirPlace) {
  torch::manual_seed(testing::seed(4));
  const Inputs in;
  const double by = std::pow(6.0, -0.5);
  const auto scores = [&](const Scoring& scoring) {
    return relative_scores(in.q, in.k, in.term, in.mask, scoring);
  };
  EXPECT_TRUE(bit_equal(scores({ScaleOf::Nothing}), in.product() + in.term + in.mask));
  EXPECT_TRUE(bit_equal(scores({}), in.product() * by + in.term + in.mask));
  EXPECT_TRUE(bit_equal(scores({ScaleOf::Scores, ScaleBy::Divide}),
                        in.product() / std::sqrt(6.0) + in.term + in.mask));
  EXPECT_TRUE(bit_equal(scores({ScaleOf::Query}),
                        torch::matmul(in.q * by, in.k.transpose(-1, -2)) + in.term + in.mask));
  EXPECT_TRUE(bit_equal(scores({ScaleOf::ScoresAndTerm}), (in.product() + in.term) * by + in.mask));
  EXPECT_TRUE(bit_equal(scores({ScaleOf::Scores, ScaleBy::Multiply, 1, true}),
                        in.product() * by + in.term * by + in.mask));
  EXPECT_TRUE(bit_equal(scores({ScaleOf::Scores, ScaleBy::Multiply, 1, false, Masking::WithTerm}),
                        in.product() * by + (in.term + in.mask)));
  EXPECT_TRUE(bit_equal(scores({ScaleOf::Scores, ScaleBy::Multiply, 1, false, Masking::Twice}),
                        in.product() * by + in.term + in.mask + in.mask));
  EXPECT_TRUE(bit_equal(relative_scores(in.q, in.k, {}, {}, {}), in.product() * by));
}

TEST(RelativeScores, FillByTheLowestNumber) {
  const Inputs in;
  const auto may = torch::rand({2, 1, 5, 7}) < 0.5;
  Scoring scoring;
  scoring.masking = Masking::FillLowest;
  const auto scores = relative_scores(in.q, in.k, in.term, may, scoring);
  EXPECT_TRUE((scores.masked_select(may.logical_not()) == std::numeric_limits<float>::lowest())
                  .all()
                  .item<bool>());
  EXPECT_ERROR(relative_scores(in.q, in.k, in.term, in.mask, scoring), c10::TypeError,
               "must be bool");
}

TEST(RelativeScores, Errors) {
  const Inputs in;
  EXPECT_ERROR(relative_scores(in.q, in.k.to(torch::kDouble), {}, {}, {}), c10::TypeError,
               "the same dtype");
  EXPECT_ERROR(relative_scores(in.q, in.k.slice(-1, 1), {}, {}, {}), c10::ValueError,
               "q must be (..., Q, D)");
  EXPECT_ERROR(relative_scores(in.q, in.k, {}, {}, {ScaleOf::ProductInOneSum}), c10::ValueError,
               "beside a term");
  EXPECT_ERROR(relative_scores(in.q, in.k.slice(1, 1), {}, {}, {}), c10::ValueError,
               "of the same heads and sequences. Got [2, 3, 5, 6] and [2, 2, 7, 6]");
  EXPECT_ERROR(relative_scores(in.q, in.k, in.term.slice(-1, 1), {}, {}), c10::ValueError,
               "the term must fit the scores, [2, 3, 5, 7]. Got [1, 3, 5, 6]");
  EXPECT_ERROR(relative_scores(in.q, in.k, {}, torch::zeros({4, 1, 5, 7}), {}), c10::ValueError,
               "the mask must fit the scores, [2, 3, 5, 7]. Got [4, 1, 5, 7]");
}

}  // namespace
}  // namespace posenc
