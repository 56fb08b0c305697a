// The vectorised dropout against at::dropout: values, gradients and the final state of the
// generator, for each dtype, layout, size and number of threads.

#include "posenc/positions/functional/dropout.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/dropout.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/utils.h>

#include "positions/functional/dropout/generator.h"
#include "support/compare.h"
#include "support/seed.h"
#include "support/threads.h"

namespace posenc::functional::dropout_test {
namespace {

using posenc::testing::bit_equal;
using posenc::testing::Threads;
using Dropout = torch::Tensor (*)(const torch::Tensor&, double, bool);

torch::Tensor aten(const torch::Tensor& x, double p, bool training) {
  return at::dropout(x, p, training);
}

torch::Tensor ours(const torch::Tensor& x, double p, bool training) {
  return functional::dropout(x, p, training);
}

torch::Tensor generator_state() { return at::detail::getDefaultCPUGenerator().get_state(); }

struct Outcome {
  torch::Tensor out, grad, state;
};

Outcome outcome(Dropout drop, const torch::Tensor& x, double p, const torch::Tensor& grad) {
  torch::manual_seed(testing::seed(3));
  torch::rand({5}, torch::kDouble);  // start at an odd position
  const auto leaf = x.detach().requires_grad_();
  const auto out = drop(leaf, p, true);
  return {out.detach(), torch::autograd::grad({out}, {leaf}, {grad})[0], generator_state()};
}

void expect_same(const torch::Tensor& x, double p) {
  const auto grad = torch::randn(x.sizes()).to(x.scalar_type());
  const auto expected = outcome(aten, x, p, grad);
  for (const int threads : {1, 2, 4}) {
    const Threads guard(threads);
    const auto found = outcome(ours, x, p, grad);
    EXPECT_TRUE(bit_equal(found.out, expected.out)) << x.sizes() << " " << x.dtype() << " " << p;
    EXPECT_TRUE(bit_equal(found.grad, expected.grad)) << x.sizes() << " " << x.dtype() << " " << p;
    EXPECT_TRUE(torch::equal(found.state, expected.state)) << x.sizes() << " " << x.dtype();
    EXPECT_EQ(found.out.strides(), expected.out.strides());
  }
}

TEST(Dropout, IsATens) {
  for (const auto dtype : {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf}) {
    EXPECT_TRUE(has_dropout_bits(dtype)) << "the composition runs here: " << dtype;
    for (const int64_t size : {1, 7, 16, 63, 64, 65, 1000, 4097, 65536, 200003}) {
      expect_same(torch::randn({size}).to(dtype), 0.1);
    }
    for (const double p : {0.5, 0.9, 1e-9}) expect_same(torch::randn({33, 70}).to(dtype), p);
  }
}

TEST(Dropout, DrawsInTheOrderOfMemory) {
  expect_same(torch::randn({40, 50, 60}).transpose(0, 1), 0.1);
  expect_same(torch::randn({5, 6, 7}).permute({2, 0, 1}), 0.3);
}

TEST(Dropout, KeepsWhatIsNotANumber) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto x = torch::tensor({infinity, -infinity, std::nan(""), -0.0, 0.0}).repeat({20});
  torch::manual_seed(testing::seed(1));
  const auto expected = at::dropout(x, 0.5, true);
  torch::manual_seed(testing::seed(1));
  const auto found = ours(x, 0.5, true);
  EXPECT_TRUE(torch::equal(found.isnan(), expected.isnan()));
  EXPECT_TRUE(bit_equal(found.nan_to_num(), expected.nan_to_num()));
}

TEST(Dropout, ReturnsItsInputWhereNothingIsDropped) {
  const auto x = torch::randn({4});
  const auto before = generator_state();
  EXPECT_TRUE(ours(x, 0.5, false).is_same(x));
  EXPECT_TRUE(ours(x, 0.0, true).is_same(x));
  EXPECT_EQ(ours(torch::empty({0, 3}), 0.5, true).sizes(), (std::vector<int64_t>{0, 3}));
  EXPECT_TRUE(torch::equal(generator_state(), before));
  EXPECT_TRUE(torch::equal(ours(x, 1.0, true), torch::zeros({4})));
}

TEST(Dropout, LeavesWhatItDoesNotReadToATen) {
  for (const auto& x : {torch::randn({30, 20}).slice(1, 0, 10),
                        torch::randn({1, 10}).expand({3, 10}), torch::randn({12})._neg_view()}) {
    torch::manual_seed(testing::seed(2));
    const auto expected = at::dropout(x, 0.4, true);
    torch::manual_seed(testing::seed(2));
    EXPECT_TRUE(bit_equal(ours(x, 0.4, true), expected));
  }
}

TEST(Dropout, GradientsOfAnotherLayoutAndTwice) {
  const auto rows = torch::randn({6, 8}, torch::kDouble).requires_grad_();
  const auto columns = torch::randn({8, 6}, torch::kDouble).t().requires_grad_();
  const auto weight = torch::randn({8, 6}, torch::kDouble);
  const auto twice = [&](Dropout drop, const torch::Tensor& x) {
    torch::manual_seed(testing::seed(4));
    const auto out = drop(x, 0.3, true);
    const auto grad =
        torch::autograd::grad({(out.t().pow(3) * weight).sum()}, {x}, {}, true, true)[0];
    return std::pair(grad.detach(), torch::autograd::grad({grad.pow(2).sum()}, {x})[0]);
  };
  for (const auto& x : {rows, columns}) {
    const auto expected = twice(aten, x), found = twice(ours, x);
    EXPECT_TRUE(bit_equal(found.first, expected.first));
    EXPECT_TRUE(bit_equal(found.second, expected.second));
  }
}

TEST(Dropout, GradientsThatAreLazyNegations) {
  const auto x = torch::randn({6, 8}), grad = torch::randn({6, 8})._neg_view();
  EXPECT_TRUE(bit_equal(outcome(ours, x, 0.3, grad).grad, outcome(aten, x, 0.3, grad).grad));
}

TEST(Dropout, FreesItsMaskAfterwards) {
  const auto x = torch::randn({6}).requires_grad_();
  const auto sum = ours(x, 0.5, true).sum();
  sum.backward();
  EXPECT_THROW(sum.backward(), c10::Error);
}

TEST(Dropout, IsATensInATrace) {
  const auto traced = torch::jit::tracer::trace(
      {torch::randn({4, 4})},
      [](torch::jit::Stack inputs) -> torch::jit::Stack {
        return {ours(inputs[0].toTensor(), 0.5, true)};
      },
      [](const torch::autograd::Variable&) { return ""; });
  EXPECT_NE(traced.first->graph->toString().find("aten::dropout"), std::string::npos);
}

TEST(DropoutErrors, AreATens) {
  EXPECT_THROW(ours(torch::randn({3}), 1.5, true), c10::Error);
  EXPECT_THROW(ours(torch::randn({3}), -0.1, true), c10::Error);
}

}  // namespace
}  // namespace posenc::functional::dropout_test
