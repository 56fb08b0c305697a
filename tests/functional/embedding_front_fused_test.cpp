// The one-pass embedding front against the composition that defines it: forward, mask, generator,
// gradients. Random shapes, layouts, options and numbers of threads.
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/utils.h>

#include <functional>
#include <vector>

#include "functional/embedding_front/composed.h"
#include "functional/embedding_front/fused.h"
#include "functional/front_case.h"
#include "posenc/functional/embedding_front.h"
#include "support/compare.h"
#include "support/dice.h"
#include "support/seed.h"
#include "support/threads.h"

namespace posenc::functional::embedding_front_fused_test {
namespace {

using posenc::testing::bit_equal;
using posenc::testing::Dice;
using posenc::testing::Threads;

torch::Tensor front_ids(Dice& dice, int64_t bound, torch::IntArrayRef shape) {
  torch::Tensor ids = torch::randint(0, bound, shape, torch::kLong);
  if (shape.size() == 2 && dice.coin())
    ids = torch::randint(0, bound, {shape[1], shape[0]}, torch::kLong).t();
  if (dice.below(6) == 0) return ids.to(torch::kShort);
  return dice.coin() ? ids : ids.to(torch::kInt);
}

torch::Tensor front_table(Dice& dice, int64_t rows, int64_t dim) {
  const bool gaps = dice.below(4) == 0;  // between rows
  return torch::randn({rows, dim + (gaps ? 3 : 0)}).slice(1, 0, dim);
}

FrontCase random_front(Dice& dice, int64_t dim, int64_t batch, int64_t length) {
  FrontCase c;
  const int64_t vocabulary = 1 + dice.below(90), positions = length + 7, types = 1 + dice.below(4);
  const auto shape =
      batch == 0 ? std::vector<int64_t>{length} : std::vector<int64_t>{batch, length};
  c.ids = front_ids(dice, vocabulary, shape);
  EmbeddingFrontWeights& w = c.weights;
  w.tokens = front_table(dice, vocabulary, dim);
  if (dice.below(5) != 0) {
    w.positions = front_table(dice, positions, dim);
    switch (dice.below(4)) {
      case 0: c.how.offset(dice.below(7)); break;
      case 1: c.how.position_ids(front_ids(dice, positions, {length})); break;
      case 2: c.how.position_ids(front_ids(dice, positions, shape)); break;
      default: break;
    }
    if (dice.below(3) == 0) c.how.position_padding_idx(dice.below(positions));
  }
  if (dice.below(4) != 0) {
    w.token_types = front_table(dice, types, dim);
    if (dice.coin()) c.how.token_type_ids(front_ids(dice, types, shape));
    if (dice.below(3) == 0) c.how.type_padding_idx(dice.below(types));
  }
  if (dice.below(4) == 0) {
    w.task_types = front_table(dice, 3, dim);
    if (dice.coin()) c.how.task_type_ids(front_ids(dice, 3, shape));
  }
  if (dice.below(4) != 0) {
    w.norm_weight = torch::randn({dim});
    if (dice.below(3) != 0) w.norm_bias = torch::randn({dim});
  }
  if (dice.below(4) == 0) {
    w.projection_weight = torch::randn({6, dim});
    if (dice.coin()) w.projection_bias = torch::randn({6});
  }
  c.how.order(dice.any({front::Order::TypesFirst, front::Order::PositionsFirst}));
  c.how.layer_norm_eps(dice.any({1e-12, 1e-5}));
  c.how.scale(dice.any({Scale::None, Scale::SqrtDim, Scale(0.3)}));
  c.how.scale_rounding(dice.any({front::ScaleRounding::None, front::ScaleRounding::ToWeight,
                                 front::ScaleRounding::ToBFloat16}));
  c.how.dropout(dice.any({0.0, 0.1, 0.5, 0.9})).training(dice.below(4) != 0);
  const bool drops = c.how.training() && c.how.dropout() != 0.0;
  if (!drops && dice.coin()) c.how.norm(front::Norm::AfterDropout);
  if (!drops && c.how.norm() == front::Norm::AfterSum && dice.coin())
    c.how.projection(front::Projection::BeforeDropout);
  if (dice.coin()) c.how.padding_idx(dice.below(vocabulary));
  return c;
}

torch::Tensor generator_words() { return at::detail::getDefaultCPUGenerator().get_state(); }

struct FrontStep {
  torch::Tensor out, state;
  std::vector<torch::Tensor> grads;
};

// One step from a seed, at an odd or an even word of the generator. Bit i of `trained`: tensor i
// requires a gradient; `existing`: it already has one.
template <typename Forward>
FrontStep front_step(const FrontCase& c, Forward forward, int64_t trained, bool existing) {
  FrontStep s;
  EmbeddingFrontWeights w = c.weights;
  int64_t bit = 0;
  for (torch::Tensor* t : tensors_of(w)) {
    if (!t->defined() || (trained >> bit++ & 1) == 0) continue;
    *t = t->detach().requires_grad_();
    if (existing) t->mutable_grad() = torch::linspace(-1, 2, t->numel()).view(t->sizes());
  }
  torch::manual_seed(testing::seed(11));
  if (trained % 3 == 0) at::detail::getDefaultCPUGenerator().get<at::CPUGeneratorImpl>()->random();
  s.out = forward(c.ids, w, c.how);
  s.state = generator_words();
  if (s.out.requires_grad())
    s.out.backward(torch::linspace(-3, 4, s.out.numel()).sin().view(s.out.sizes()));
  for (torch::Tensor* t : tensors_of(w)) s.grads.push_back(t->defined() ? t->grad() : *t);
  return s;
}

bool is_fused(const FrontCase& c) {
  EmbeddingFrontPlan plan;
  return is_fusable(c.ids, c.weights, c.how, plan);
}

torch::Tensor must_be_fused(const torch::Tensor& ids, const EmbeddingFrontWeights& weights,
                            const EmbeddingFrontFuncOptions& how) {
  EmbeddingFrontPlan plan;
  EXPECT_TRUE(is_fusable(ids, weights, how, plan)) << "the composition would have run";
  return embedding_front(ids, weights, how);
}

void expect_front_bits(const FrontCase& c, int64_t trained, bool existing) {
  const FrontStep ours = front_step(c, must_be_fused, trained, existing);
  const FrontStep theirs = front_step(c, embedding_front_composed, trained, existing);
  EXPECT_TRUE(bit_equal(ours.out, theirs.out));
  EXPECT_TRUE(ours.out.is_contiguous());
  EXPECT_EQ(ours.out.requires_grad(), theirs.out.requires_grad());
  EXPECT_TRUE(bit_equal(ours.state, theirs.state));
  for (size_t i = 0; i < ours.grads.size(); ++i) {
    ASSERT_EQ(ours.grads[i].defined(), theirs.grads[i].defined()) << "tensor " << i;
    if (ours.grads[i].defined()) {
      EXPECT_TRUE(bit_equal(ours.grads[i], theirs.grads[i])) << "tensor " << i;
    }
  }
}

class FrontFused : public FrontTest {};

TEST_F(FrontFused, EqualsTheComposition) {
  Dice dice(5);
  torch::manual_seed(testing::seed(5));
  for (int i = 0; i < 300; ++i) {
    const int64_t dim = dice.any<int64_t>({1, 2, 6, 16, 33, 96, 128, 200, 768, 1000, 1400});
    const FrontCase c = random_front(dice, dim, dice.below(5), 1 + dice.below(30));
    SCOPED_TRACE(c10::str("case ", i, " ids ", c.ids.sizes(), " dim ", dim));
    expect_front_bits(c, dice.coin() ? 255 : dice.below(256), dice.coin());
    const torch::NoGradGuard no_grad;
    expect_front_bits(c, 255, false);
  }
}

// With the threads that PyTorch has: its gradient of the norm depends on their number.
TEST_F(FrontFused, EqualsTheCompositionOnAnyNumberOfThreads) {
  Dice dice(17);
  torch::manual_seed(testing::seed(6));
  for (int threads = 1; threads <= 3; ++threads) {
    const Threads some(threads);
    for (int i = 0; i < 8; ++i) {
      const FrontCase c = random_front(dice, 200, 1 + dice.below(70), 150 + 11 * i);
      SCOPED_TRACE(c10::str(threads, " threads, case ", i, " ids ", c.ids.sizes()));
      expect_front_bits(c, 255, i % 2 == 0);
    }
  }
}

TEST_F(FrontFused, TypesFromTokensAreAddedAndTheirGradientIsTheCompositions) {
  Dice dice(2);
  FrontCase c = random_front(dice, 33, 2, 7);
  c.weights.token_types = torch::Tensor();
  c.how.types_from_tokens(true).token_type_ids(
      torch::randint(0, c.weights.tokens.size(0), c.ids.sizes()));
  expect_front_bits(c, 0, false);
  c.weights.tokens = c.weights.tokens.clone().requires_grad_();
  EXPECT_FALSE(is_fused(c));
}

TEST_F(FrontFused, LeavesTheRestToTheComposition) {
  EXPECT_TRUE(is_fused(bert()));
  const std::vector<std::function<void(FrontCase&)>> changes = {
      [](FrontCase& c) {
        for (torch::Tensor* t : tensors_of(c.weights))
          *t = t->defined() ? t->to(torch::kDouble) : *t;
      },
      [](FrontCase& c) { c.weights.positions = c.weights.positions._neg_view(); },
      [](FrontCase& c) { c.weights.tokens = torch::randn({5, 7}).t(); },
      [](FrontCase& c) { c.weights.norm_weight = torch::randn({10}).slice(0, 0, 10, 2); },
      [](FrontCase& c) { c.ids = c.ids.slice(1, 0, 0); },
      [](FrontCase& c) { c.how.norm(front::Norm::AfterTokens); },
      [](FrontCase& c) { c.how.norm(front::Norm::AfterDropout).dropout(0.5).training(true); },
      [](FrontCase& c) {
        c.weights.projection_weight = torch::randn({5, 5});
        c.how.projection(front::Projection::Tokens);
      },
      [](FrontCase& c) {
        c.weights.projection_weight = torch::randn({5, 5});
        c.how.projection(front::Projection::BeforeDropout).dropout(0.5).training(true);
      }};
  for (size_t i = 0; i < changes.size(); ++i) {
    FrontCase c = bert();
    changes[i](c);
    EXPECT_FALSE(is_fused(c)) << i;
    torch::manual_seed(1);
    const auto ours = embedding_front(c.ids, c.weights, c.how);
    torch::manual_seed(1);
    EXPECT_TRUE(bit_equal(ours, embedding_front_composed(c.ids, c.weights, c.how))) << i;
  }
}

TEST_F(FrontFused, RefusesRowsOutsideTheirTables) {
  const auto refused = [](auto change, const char* text) {
    FrontCase c = bert();
    change(c);
    EXPECT_FALSE(is_fused(c));
    EXPECT_ERROR(embedding_front(c.ids, c.weights, c.how), c10::IndexError, text);
  };
  refused([](FrontCase& c) { c.ids = torch::tensor({{1, 7, 1}, {0, 6, 1}}); },
          "id must lie in [0, vocab_size) = [0, 7). Got 7 at index [0, 1]");
  refused([](FrontCase& c) { c.how.position_ids(torch::tensor({0, 1, 4})); }, "Got 4 at index [2]");
  refused([](FrontCase& c) { c.how.token_type_ids(torch::tensor({{0, 0, 0}, {0, -1, 0}})); },
          "Got -1 at index [1, 1]");
  refused(
      [](FrontCase& c) {
        c.weights.task_types = torch::randn({3, 5});
        c.how.task_type_ids(torch::full({2, 3}, 3, torch::kInt));
      },
      "Got 3 at index [0, 0]");
}

TEST_F(FrontFused, IsRecordedOnlyIfRequired) {
  const FrontCase c = trained_bert();
  {
    const torch::NoGradGuard guard;
    EXPECT_FALSE(embedding_front(c.ids, c.weights).requires_grad());
  }
  {
    const c10::InferenceMode guard;
    EXPECT_TRUE(embedding_front(c.ids, c.weights).is_inference());
  }
  EXPECT_FALSE(embedding_front(c.ids, bert().weights).requires_grad());
  EXPECT_EQ(embedding_front(c.ids, c.weights).grad_fn()->name(), "EmbeddingFrontNormBackward");
}

}  // namespace
}  // namespace posenc::functional::embedding_front_fused_test
