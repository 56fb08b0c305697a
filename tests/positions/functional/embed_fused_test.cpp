// The fused kernel against the composition that defines it: forward, mask, generator, gradients.
// Random shapes, dtypes, layouts and numbers of threads.

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>

#include "posenc/positions/functional/embed.h"
#include "positions/functional/embed/composed.h"
#include "positions/functional/embed/fused.h"
#include "support/compare.h"
#include "support/dice.h"
#include "support/seed.h"
#include "support/threads.h"

namespace posenc::functional {
namespace {

using posenc::testing::bit_equal;
using posenc::testing::Dice;
using posenc::testing::Threads;

struct Case {
  torch::Tensor ids, weight, table;
  EmbedFuncOptions how;
};

torch::Tensor integers(Dice& dice, int64_t bound, torch::IntArrayRef shape) {
  torch::Tensor ids = torch::randint(0, bound, shape, torch::kLong);
  if (shape.size() == 2 && dice.coin())
    ids = torch::randint(0, bound, {shape[1], shape[0]}, torch::kLong).t();
  return dice.coin() ? ids : ids.to(torch::kInt);
}

Case random_case(Dice& dice, torch::Dtype dtype, int64_t dim, int64_t batch, int64_t length) {
  Case c;
  const int64_t vocabulary = 1 + dice.below(90), rows = length + 7;
  c.weight = torch::randn({vocabulary, dim}).to(dtype);
  if (dice.below(4) == 0)  // rows with gaps between them
    c.weight = torch::randn({vocabulary, dim + 3}).to(dtype).slice(1, 0, dim);
  c.table = torch::randn({rows, dim}).to(dtype);
  if (dice.coin()) c.table = c.table.unsqueeze(0);
  const bool batched = batch > 0, batch_first = dice.coin();
  const auto shape = !batched      ? std::vector<int64_t>{length}
                     : batch_first ? std::vector<int64_t>{batch, length}
                                   : std::vector<int64_t>{length, batch};
  c.ids = integers(dice, vocabulary, shape);
  if (dice.below(5) == 0) c.ids = c.ids.to(dice.coin() ? torch::kShort : torch::kByte);
  c.how.position().batch_first(batch_first);
  switch (dice.below(3)) {
    case 0: c.how.position().offset(dice.below(7)); break;
    case 1: c.how.position().position_ids(integers(dice, rows, {length})); break;
    default: c.how.position().position_ids(integers(dice, rows, shape));
  }
  c.how.scale(dice.any({Scale::None, Scale::SqrtDim, Scale(0.3)}));
  c.how.dropout(dice.any({0.0, 0.1, 0.5, 0.9})).training(dice.below(4) != 0);
  c.how.precision(dice.any({Precision::Reference, Precision::Exact}));
  const bool once =
      c.how.precision() == Precision::Exact && at::isReducedFloatingType(c.weight.scalar_type());
  if (once) c.table = c.table.to(torch::kFloat);
  if (dice.coin()) c.how.padding_idx(dice.below(2 * vocabulary) - vocabulary);
  return c;
}

torch::Tensor generator_state() { return at::detail::getDefaultCPUGenerator().get_state(); }

// Runs one step of each from the same seed, at an odd or even word of the generator.
struct Step {
  torch::Tensor out, grad, state;
};
template <typename Forward>
Step step(const Case& c, Forward forward, bool odd, const torch::Tensor& existing) {
  Step s;
  const auto weight = c.weight.detach().requires_grad_();
  if (existing.defined()) weight.mutable_grad() = existing.clone();
  torch::manual_seed(testing::seed(11));
  if (odd) at::detail::getDefaultCPUGenerator().get<at::CPUGeneratorImpl>()->random();
  s.out = forward(c.ids, weight, c.table, c.how);
  s.state = generator_state();
  const auto grad =
      torch::linspace(-3, 4, s.out.numel()).sin().view(s.out.sizes()).to(s.out.dtype());
  s.out.backward(grad);
  s.grad = weight.grad();
  return s;
}

torch::Tensor must_be_fused(const torch::Tensor& ids, const torch::Tensor& weight,
                            const torch::Tensor& table, const EmbedFuncOptions& how) {
  EmbedPlan plan;
  EXPECT_TRUE(is_fusable(ids, weight, table, how, plan)) << "the composition would have run";
  return table.defined() ? embed(ids, weight, table, how)
                         : token_embedding(ids, weight, how.scale(), how.padding_idx());
}

void expect_same_bits(const Case& c, bool odd, const torch::Tensor& existing) {
  const Step ours = step(c, must_be_fused, odd, existing);
  const Threads one(1);  // the reference is PyTorch on one thread
  const Step theirs = step(c, embed_composed, odd, existing);
  EXPECT_TRUE(bit_equal(ours.out, theirs.out));
  EXPECT_TRUE(ours.out.is_contiguous());
  EXPECT_TRUE(bit_equal(ours.state, theirs.state));
  EXPECT_TRUE(bit_equal(ours.grad, theirs.grad));
}

// Without -0, which remains in rows that no token uses: see EmbedAccumulate.
torch::Tensor gradient_like(const torch::Tensor& weight) {
  return torch::randn_like(weight).contiguous() + 0.0;
}

class EmbedFused : public ::testing::TestWithParam<torch::Dtype> {};
INSTANTIATE_TEST_SUITE_P(Type, EmbedFused,
                         ::testing::Values(torch::kFloat, torch::kDouble, torch::kBFloat16,
                                           torch::kHalf));

TEST_P(EmbedFused, EqualsTheComposition) {
  Dice dice(static_cast<uint32_t>(GetParam()) + 5);
  torch::manual_seed(testing::seed(5));
  for (int i = 0; i < 150; ++i) {
    const int64_t dim = dice.any<int64_t>({1, 2, 6, 16, 33, 96, 200, 512});
    const Case c = random_case(dice, GetParam(), dim, dice.below(5), 1 + dice.below(30));
    const auto existing = dice.coin() ? gradient_like(c.weight) : torch::Tensor();
    SCOPED_TRACE(c10::str("case ", i, " ids ", c.ids.sizes(), " dim ", dim));
    expect_same_bits(c, dice.coin(), existing);
  }
}

// A product of a gradient and a scale that underflows to -0 is added to 0, as any other.
TEST_P(EmbedFused, AddsProductsThatUnderflow) {
  const auto least = torch::full({}, std::numeric_limits<double>::denorm_min(), torch::kDouble);
  const double tiny = GetParam() == torch::kHalf       ? 0x1p-24
                      : GetParam() == torch::kBFloat16 ? 0x1p-133
                      : GetParam() == torch::kFloat    ? 0x1p-149
                                                       : least.item<double>();
  Case c;
  c.weight = torch::randn({4, 20}).to(GetParam());
  c.table = torch::randn({5, 20}).to(GetParam());
  c.how.scale(0.3);
  const auto grad_of = [&](auto forward) {
    const auto weight = c.weight.detach().requires_grad_();
    const auto out = forward(c.ids, weight, c.table, c.how);
    const auto sign = torch::arange(out.numel()).remainder(2).mul(2).sub(1).view(out.sizes());
    out.backward((sign.to(torch::kDouble) * tiny).to(out.dtype()));
    return weight.grad();
  };
  for (const auto& ids :
       {torch::tensor({2}), torch::tensor({2, 1, 2}), torch::tensor({3, 3, 3, 3})}) {
    c.ids = ids;
    EXPECT_TRUE(bit_equal(grad_of(must_be_fused), grad_of(embed_composed))) << ids.sizes();
  }
}

TEST_P(EmbedFused, IsTheSameForAnyNumberOfThreads) {
  Dice dice(17);
  torch::manual_seed(testing::seed(6));
  for (int threads = 1; threads <= 4; ++threads) {
    for (int i = 0; i < 3; ++i) {
      const Case c = random_case(dice, GetParam(), 200, 4, 150 + 11 * i);
      const Threads some(threads);
      SCOPED_TRACE(c10::str(threads, " threads, case ", i));
      expect_same_bits(c, i == 1,
                       i == 2 ? torch::ones_like(c.weight).contiguous() : torch::Tensor());
    }
  }
}

TEST_P(EmbedFused, TokensAloneAreScaledInOnePass) {
  const auto weight = torch::randn({50, 33}).to(GetParam());
  const auto ids = torch::randint(0, 50, {2, 3, 4}, torch::kLong);
  for (const Scale& scale : {Scale::None, Scale::SqrtDim}) {
    const auto how = EmbedFuncOptions().scale(scale);
    EXPECT_TRUE(
        bit_equal(must_be_fused(ids, weight, {}, how), embed_composed(ids, weight, {}, how)));
    EXPECT_TRUE(
        bit_equal(token_embedding(ids, weight, scale), embed_composed(ids, weight, {}, how)));
  }
}

// 17 MB: non-temporal stores, positions in blocks, also with a dropout mask.
TEST(EmbedFusedLarge, EqualsTheComposition) {
  Dice dice(3);
  for (const double p : {0.0, 0.2}) {
    Case c;
    c.weight = torch::randn({300, 512});
    c.table = torch::randn({1100, 512});
    c.ids = torch::randint(0, 300, {8, 1040}, torch::kLong);
    c.how.scale(Scale::SqrtDim).dropout(p).training(true).position().offset(60);
    for (const int threads : {1, 2}) {
      const Threads some(threads);
      expect_same_bits(c, true, {});
    }
  }
}

TEST_P(EmbedFused, ExactRoundsOnceAndErrsLess) {
  if (!at::isReducedFloatingType(GetParam())) return;
  const auto ids = torch::randint(0, 50, {4, 64}, torch::kLong);
  const auto weight = torch::randn({50, 512}).to(GetParam());
  const auto table = torch::randn({64, 512});
  const auto how = EmbedFuncOptions().scale(Scale::SqrtDim);
  const auto truth = embed(ids, weight.to(torch::kDouble), table.to(torch::kDouble), how);
  const auto error = [&](const torch::Tensor& got) {
    EXPECT_EQ(got.scalar_type(), GetParam());
    return (got.to(torch::kDouble) - truth).abs().mean().item<double>();
  };
  const double reference = error(embed(ids, weight, table.to(GetParam()), how));
  const double exact =
      error(embed(ids, weight, table, EmbedFuncOptions(how).precision(Precision::Exact)));
  EXPECT_LT(exact * 1.2, reference);
}

}  // namespace
}  // namespace posenc::functional
