// The one-pass embeddings against the composition that defines it: forward, mask,
// generator, gradients. Random shapes, layouts, options and numbers of threads.
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/utils.h>

#include <functional>
#include <vector>

#include "posenc/positions/functional/encoder_embeddings.h"
#include "positions/functional/embed/composed.h"
#include "positions/functional/embed/fused.h"
#include "positions/functional/embeddings_case.h"
#include "support/compare.h"
#include "support/dice.h"
#include "support/seed.h"
#include "support/threads.h"

namespace posenc::functional::encoder_embeddings_fused_test {
namespace {

using posenc::testing::bit_equal;
using posenc::testing::Dice;
using posenc::testing::Threads;

constexpr int64_t kAll = (1 << 12) - 1;  // all tensors are trained

torch::Tensor embeddings_ids(Dice& dice, int64_t bound, torch::IntArrayRef shape) {
  torch::Tensor ids = torch::randint(0, bound, shape, torch::kLong);
  if (shape.size() == 2 && dice.coin())
    ids = torch::randint(0, bound, {shape[1], shape[0]}, torch::kLong).t();
  if (dice.below(6) == 0) return ids.to(torch::kShort);
  return dice.coin() ? ids : ids.to(torch::kInt);
}

torch::Tensor embeddings_table(Dice& dice, int64_t rows, int64_t dim) {
  const bool gaps = dice.below(4) == 0;  // between rows
  return torch::randn({rows, dim + (gaps ? 3 : 0)}).slice(1, 0, dim);
}

EmbeddingsCase random_embeddings(Dice& dice, int64_t dim, int64_t batch, int64_t length) {
  EmbeddingsCase c;
  const int64_t vocabulary = 1 + dice.below(90), positions = length + 7, types = 1 + dice.below(4);
  const auto shape =
      batch == 0 ? std::vector<int64_t>{length} : std::vector<int64_t>{batch, length};
  c.ids = embeddings_ids(dice, vocabulary, shape);
  EncoderEmbeddingsWeights& w = c.weights;
  w.tokens = embeddings_table(dice, vocabulary, dim);
  if (dice.below(5) != 0) {
    w.positions = embeddings_table(dice, positions, dim);
    switch (dice.below(4)) {
      case 0: c.how.offset(dice.below(7)); break;
      case 1: c.how.position_ids(embeddings_ids(dice, positions, {length})); break;
      case 2: c.how.position_ids(embeddings_ids(dice, positions, shape)); break;
      default: break;
    }
    if (dice.below(3) == 0) c.how.position_padding_idx(dice.below(positions));
  }
  if (dice.below(4) != 0) {
    w.token_types = embeddings_table(dice, types, dim);
    if (dice.coin()) c.how.token_type_ids(embeddings_ids(dice, types, shape));
    if (dice.below(3) == 0) c.how.type_padding_idx(dice.below(types));
  }
  if (dice.below(4) == 0) {
    w.task_types = embeddings_table(dice, 3, dim);
    if (dice.coin()) c.how.task_type_ids(embeddings_ids(dice, 3, shape));
  }
  if (!w.task_types.defined() && dice.below(4) == 0) {
    const int64_t edges = 2 + dice.below(9);
    for (torch::Tensor* table : {&w.x_positions, &w.y_positions, &w.h_positions, &w.w_positions})
      *table = embeddings_table(dice, edges, dim);
    auto box_shape = shape;
    box_shape.insert(box_shape.end(), {2, 2});
    const auto corners = torch::randint(0, edges, box_shape).sort(-2);
    if (dice.below(3) != 0)
      c.how.bbox(std::get<0>(corners).flatten(-2).to(dice.any({torch::kLong, torch::kByte})));
  }
  if (dice.below(4) != 0) {
    w.norm_weight = torch::randn({dim});
    if (dice.below(3) != 0) w.norm_bias = torch::randn({dim});
  }
  if (dice.below(4) == 0) {
    w.projection_weight = torch::randn({6, dim});
    if (dice.coin()) w.projection_bias = torch::randn({6});
  }
  c.how.order(dice.any({embeddings::Order::TypesFirst, embeddings::Order::PositionsFirst}));
  c.how.layer_norm_eps(dice.any({1e-12, 1e-5}));
  c.how.scale(dice.any({Scale::None, Scale::SqrtDim, Scale(0.3)}));
  c.how.scale_rounding(
      dice.any({embeddings::ScaleRounding::None, embeddings::ScaleRounding::ToWeight,
                embeddings::ScaleRounding::ToBFloat16}));
  c.how.dropout(dice.any({0.0, 0.1, 0.5, 0.9})).training(dice.below(4) != 0);
  const bool drops = c.how.training() && c.how.dropout() != 0.0;
  if (!drops && dice.coin()) c.how.norm(embeddings::Norm::AfterDropout);
  if (!drops && c.how.norm() == embeddings::Norm::AfterSum && dice.coin())
    c.how.projection(embeddings::Projection::BeforeDropout);
  if (dice.coin()) c.how.padding_idx(dice.below(vocabulary));
  return c;
}

torch::Tensor generator_words() { return at::detail::getDefaultCPUGenerator().get_state(); }

struct EmbeddingsStep {
  torch::Tensor out, state;
  std::vector<torch::Tensor> grads;
};

// One step from a seed, at an odd or an even word of the generator. Bit i of `trained`: tensor i
// requires a gradient; `existing`: it already has one.
template <typename Forward>
EmbeddingsStep embeddings_step(const EmbeddingsCase& c, Forward forward, int64_t trained,
                               bool existing) {
  EmbeddingsStep s;
  EncoderEmbeddingsWeights w = c.weights;
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

bool is_fused(const EmbeddingsCase& c) {
  EmbedPlan plan;
  return is_fusable(c.ids, c.weights, c.how, plan);
}

torch::Tensor must_be_fused(const torch::Tensor& ids, const EncoderEmbeddingsWeights& weights,
                            const EncoderEmbeddingsFuncOptions& how) {
  EmbedPlan plan;
  EXPECT_TRUE(is_fusable(ids, weights, how, plan)) << "the composition would have run";
  return encoder_embeddings(ids, weights, how);
}

void expect_embeddings_bits(const EmbeddingsCase& c, int64_t trained, bool existing) {
  // The tables of boxes are read twice: where they are trained, the tokens must be too.
  if (c.weights.x_positions.defined() && trained != 0) trained |= 1;
  const EmbeddingsStep ours = embeddings_step(c, must_be_fused, trained, existing);
  const EmbeddingsStep theirs = embeddings_step(c, encoder_embeddings_composed, trained, existing);
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

class EmbeddingsFused : public EmbeddingsTest {};

TEST_F(EmbeddingsFused, EqualsTheComposition) {
  Dice dice(5);
  torch::manual_seed(testing::seed(5));
  for (int i = 0; i < 300; ++i) {
    const int64_t dim = dice.any<int64_t>({1, 2, 6, 16, 33, 96, 128, 200, 768, 1000, 1400});
    const EmbeddingsCase c = random_embeddings(dice, dim, dice.below(5), 1 + dice.below(30));
    SCOPED_TRACE(c10::str("case ", i, " ids ", c.ids.sizes(), " dim ", dim));
    expect_embeddings_bits(c, dice.coin() ? kAll : dice.below(kAll + 1), dice.coin());
    const torch::NoGradGuard no_grad;
    expect_embeddings_bits(c, kAll, false);
  }
}

// With the threads that PyTorch has: its gradient of the norm depends on their number.
TEST_F(EmbeddingsFused, EqualsTheCompositionOnAnyNumberOfThreads) {
  Dice dice(17);
  torch::manual_seed(testing::seed(6));
  for (int threads = 1; threads <= 3; ++threads) {
    const Threads some(threads);
    for (int i = 0; i < 8; ++i) {
      const EmbeddingsCase c = random_embeddings(dice, 200, 1 + dice.below(70), 150 + 11 * i);
      SCOPED_TRACE(c10::str(threads, " threads, case ", i, " ids ", c.ids.sizes()));
      expect_embeddings_bits(c, kAll, i % 2 == 0);
    }
  }
}

TEST_F(EmbeddingsFused, TypesFromTokensAreAddedAndTheirGradientIsTheCompositions) {
  Dice dice(2);
  EmbeddingsCase c = random_embeddings(dice, 33, 2, 7);
  c.weights.token_types = torch::Tensor();
  c.how.types_from_tokens(true).token_type_ids(
      torch::randint(0, c.weights.tokens.size(0), c.ids.sizes()));
  expect_embeddings_bits(c, 0, false);
  c.weights.tokens = c.weights.tokens.clone().requires_grad_();
  EXPECT_FALSE(is_fused(c));
}

TEST_F(EmbeddingsFused, TakesEightTablesAndNoMore) {
  EmbeddingsCase c = bert();
  for (torch::Tensor* table : {&c.weights.x_positions, &c.weights.y_positions,
                               &c.weights.h_positions, &c.weights.w_positions})
    *table = torch::randn({3, 5});
  EXPECT_TRUE(is_fused(c));
  c.weights.task_types = torch::randn({2, 5});
  EXPECT_FALSE(is_fused(c));
  EXPECT_TRUE(bit_equal(encoder_embeddings(c.ids, c.weights, c.how),
                        encoder_embeddings_composed(c.ids, c.weights, c.how)));
}

TEST_F(EmbeddingsFused, LeavesTheRestToTheComposition) {
  EXPECT_TRUE(is_fused(bert()));
  const std::vector<std::function<void(EmbeddingsCase&)>> changes = {
      [](EmbeddingsCase& c) {
        for (torch::Tensor* t : tensors_of(c.weights))
          *t = t->defined() ? t->to(torch::kDouble) : *t;
      },
      [](EmbeddingsCase& c) { c.weights.positions = c.weights.positions._neg_view(); },
      [](EmbeddingsCase& c) { c.weights.tokens = torch::randn({5, 7}).t(); },
      [](EmbeddingsCase& c) { c.weights.norm_weight = torch::randn({10}).slice(0, 0, 10, 2); },
      [](EmbeddingsCase& c) { c.ids = c.ids.slice(1, 0, 0); },
      [](EmbeddingsCase& c) { c.how.norm(embeddings::Norm::AfterTokens); },
      [](EmbeddingsCase& c) {
        c.how.norm(embeddings::Norm::AfterDropout).dropout(0.5).training(true);
      },
      [](EmbeddingsCase& c) {
        c.weights.projection_weight = torch::randn({5, 5});
        c.how.projection(embeddings::Projection::Tokens);
      },
      [](EmbeddingsCase& c) {
        c.weights.projection_weight = torch::randn({5, 5});
        c.how.projection(embeddings::Projection::BeforeDropout).dropout(0.5).training(true);
      }};
  for (size_t i = 0; i < changes.size(); ++i) {
    EmbeddingsCase c = bert();
    changes[i](c);
    EXPECT_FALSE(is_fused(c)) << i;
    torch::manual_seed(1);
    const auto ours = encoder_embeddings(c.ids, c.weights, c.how);
    torch::manual_seed(1);
    EXPECT_TRUE(bit_equal(ours, encoder_embeddings_composed(c.ids, c.weights, c.how))) << i;
  }
}

TEST_F(EmbeddingsFused, RefusesRowsOutsideTheirTables) {
  const auto refused = [](auto change, const char* text) {
    EmbeddingsCase c = bert();
    change(c);
    EXPECT_FALSE(is_fused(c));
    EXPECT_ERROR(encoder_embeddings(c.ids, c.weights, c.how), c10::IndexError, text);
  };
  refused([](EmbeddingsCase& c) { c.ids = torch::tensor({{1, 7, 1}, {0, 6, 1}}); },
          "id must lie in [0, vocab_size) = [0, 7). Got 7 at index [0, 1]");
  refused([](EmbeddingsCase& c) { c.how.position_ids(torch::tensor({0, 1, 4})); },
          "Got 4 at index [2]");
  refused([](EmbeddingsCase& c) { c.how.token_type_ids(torch::tensor({{0, 0, 0}, {0, -1, 0}})); },
          "Got -1 at index [1, 1]");
  refused(
      [](EmbeddingsCase& c) {
        c.weights.task_types = torch::randn({3, 5});
        c.how.task_type_ids(torch::full({2, 3}, 3, torch::kInt));
      },
      "Got 3 at index [0, 0]");
}

TEST_F(EmbeddingsFused, IsRecordedOnlyIfRequired) {
  const EmbeddingsCase c = trained_bert();
  {
    const torch::NoGradGuard guard;
    EXPECT_FALSE(encoder_embeddings(c.ids, c.weights).requires_grad());
  }
  {
    const c10::InferenceMode guard;
    EXPECT_TRUE(encoder_embeddings(c.ids, c.weights).is_inference());
  }
  EXPECT_FALSE(encoder_embeddings(c.ids, bert().weights).requires_grad());
  EXPECT_EQ(encoder_embeddings(c.ids, c.weights).grad_fn()->name(),
            "EncoderEmbeddingsNormBackward");
}

}  // namespace
}  // namespace posenc::functional::encoder_embeddings_fused_test
