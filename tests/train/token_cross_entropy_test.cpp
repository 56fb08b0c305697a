#include "posenc/train/token_cross_entropy.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "support/compare.h"

namespace posenc::functional {
namespace {

using testing::Op;

TokenCrossEntropyFuncOptions smooth(double label_smoothing) {
  return TokenCrossEntropyFuncOptions().label_smoothing(label_smoothing);
}

// The formula in the header, one token at a time.
at::Tensor formula(const at::Tensor& logits, const at::Tensor& targets, double e, int64_t ignore) {
  const auto rows = logits.reshape({-1, logits.size(-1)});
  const auto ids = targets.reshape({-1});
  at::Tensor sum = at::zeros({}, logits.options());
  int64_t count = 0;
  for (int64_t i = 0; i < ids.size(0); ++i) {
    const auto id = ids[i].item<int64_t>();
    if (id == ignore) continue;
    const auto cost = -(rows[i] - rows[i].logsumexp(0));
    sum = sum + (1.0 - e) * cost[id] + e * cost.mean();
    ++count;
  }
  return sum / count;
}

TEST(TokenCrossEntropy, IsTheFormula) {
  const auto logits = at::randn({3, 5, 7}, at::kDouble),
             targets = at::randint(7, {3, 5}, at::kLong);
  for (const double e : {0.0, 0.1, 1.0}) {
    EXPECT_TRUE(testing::within(Op::Layers,
                                token_cross_entropy(logits, targets, smooth(e).ignore_index(2)),
                                formula(logits, targets, e, 2)));
  }
}

TEST(TokenCrossEntropy, WhatIsIgnoredHasNoGradient) {
  const auto logits = at::randn({2, 3, 4}).set_requires_grad(true);
  const auto targets = at::tensor({1, 0, 0, 2, 3, 0}, at::kLong).view({2, 3});
  token_cross_entropy(logits, targets, smooth(0.1).ignore_index(0)).backward();
  const auto moved = (logits.grad() != 0).any(-1);
  EXPECT_TRUE(at::equal(moved, targets != 0));
}

TEST(TokenCrossEntropy, SaysWhatIsWrong) {
  const auto logits = at::randn({2, 3, 4}), targets = at::zeros({2, 3}, at::kLong);
  EXPECT_ERROR(token_cross_entropy(logits, targets, smooth(1.5)), c10::ValueError,
               "[token_cross_entropy] label_smoothing must lie in [0, 1]. Got 1.5");
  EXPECT_ERROR(token_cross_entropy(logits, targets, smooth(-0.1)), c10::ValueError, "Got -0.1");
  EXPECT_ERROR(token_cross_entropy(logits.transpose(1, 2), targets), c10::ValueError,
               "logits must be (..., V), V > 0, and targets (...). Got [2, 4, 3] and [2, 3]");
  EXPECT_ERROR(token_cross_entropy(at::randn({2, 3, 0}), targets), c10::ValueError, "V > 0");
  EXPECT_ERROR(token_cross_entropy(at::zeros({2, 3, 4}, at::kLong), targets), c10::TypeError,
               "logits must be real numbers. Got Long");
  EXPECT_ERROR(token_cross_entropy(logits, targets.to(at::kFloat)), c10::TypeError,
               "targets must be ids, int64. Got Float");
  EXPECT_ERROR(token_cross_entropy(logits, targets + 4), c10::IndexError, "4");
}

TEST(CausalCrossEntropy, IsThatOfTheNextLabels) {
  const auto logits = at::randn({3, 5, 7}, at::kDouble), labels = at::randint(7, {3, 5}, at::kLong);
  const auto expected = formula(logits.slice(1, 0, -1), labels.slice(1, 1), 0.0, 2);
  const auto options = CausalCrossEntropyFuncOptions().ignore_index(2);
  EXPECT_TRUE(testing::within(Op::Layers, causal_cross_entropy(logits, labels, options), expected));
  const int64_t count = labels.slice(1, 1).ne(2).sum().item<int64_t>();
  const auto sum = causal_cross_entropy(
      logits, labels, CausalCrossEntropyFuncOptions(options).num_items_in_batch(10));
  EXPECT_TRUE(testing::within(Op::Layers, sum * 10 / count, expected));
}

TEST(CausalCrossEntropy, SaysWhatIsWrong) {
  const auto logits = at::randn({2, 3, 4}), labels = at::zeros({2, 3}, at::kLong);
  EXPECT_ERROR(causal_cross_entropy(logits, labels.slice(1, 1)), c10::ValueError,
               "[causal_cross_entropy] logits must be (..., V), V > 0, and labels (...). Got");
  EXPECT_ERROR(causal_cross_entropy(logits.slice(1, 3), labels.slice(1, 3)), c10::ValueError,
               "labels must be (..., L), L > 0. Got [2, 0]");
  EXPECT_ERROR(causal_cross_entropy(logits[0][0], labels[0][0]), c10::ValueError, "L > 0");
  EXPECT_ERROR(
      causal_cross_entropy(logits, labels, CausalCrossEntropyFuncOptions().num_items_in_batch(0)),
      c10::ValueError, "num_items_in_batch must be positive. Got 0");
  EXPECT_ERROR(causal_cross_entropy(logits, labels.to(at::kFloat)), c10::TypeError, "labels");
}

}  // namespace
}  // namespace posenc::functional
