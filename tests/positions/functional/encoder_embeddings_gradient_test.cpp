// The gradients of the fused embeddings: retained, differentiated, seen by hooks, added
// in place, and rejected where the composition rejects them.

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/utils.h>

#include <functional>
#include <utility>
#include <vector>

#include "posenc/positions/functional/encoder_embeddings.h"
#include "positions/functional/embed/composed.h"
#include "positions/functional/embeddings_case.h"
#include "support/compare.h"
#include "support/seed.h"

namespace posenc::functional::encoder_embeddings_gradient_test {
namespace {

using posenc::testing::bit_equal;

class EmbeddingsGradient : public EmbeddingsTest {};

// The results of `body` for both functions, each with its own weights.
template <typename Body>
std::pair<torch::Tensor, torch::Tensor> both(Body body) {
  const EmbeddingsCase values = bert();
  const auto run = [&](auto forward) {
    EmbeddingsCase c = values;
    c.how.scale(Scale::SqrtDim).dropout(0.3).training(true);
    for (torch::Tensor* t : tensors_of(c.weights))
      if (t->defined()) *t = t->clone().requires_grad_();
    torch::manual_seed(testing::seed(4));
    return body(c, [&] { return forward(c.ids, c.weights, c.how); });
  };
  return {run(encoder_embeddings), run(encoder_embeddings_composed)};
}
template <typename Body>
void same(Body body) {
  const auto [ours, theirs] = both(body);
  EXPECT_TRUE(bit_equal(ours, theirs));
}

torch::Tensor all_grads(EmbeddingsCase& c) {
  std::vector<torch::Tensor> flat;
  for (torch::Tensor* t : tensors_of(c.weights))
    if (t->defined() && t->grad().defined()) flat.push_back(t->grad().flatten());
  return torch::cat(flat);
}

// Fine-tuning with frozen tokens may refill its buffer of ids before backward.
TEST_F(EmbeddingsGradient, DoesNotNeedTheIdsOfATableThatDoesNotLearn) {
  same([](EmbeddingsCase& c, auto forward) {
    c.weights.tokens.requires_grad_(false);
    c.weights.token_types.requires_grad_(false);
    c.ids = c.ids.clone();
    const auto loss = forward().pow(2).sum();
    c.ids.zero_();
    loss.backward();
    EXPECT_FALSE(c.weights.tokens.grad().defined());
    EXPECT_THROW(loss.backward(), c10::Error);
    return all_grads(c);
  });
}

TEST_F(EmbeddingsGradient, TakesInferenceIdsForATableThatDoesNotLearn) {
  same([](EmbeddingsCase& c, auto forward) {
    c.weights.tokens.requires_grad_(false);
    {
      const c10::InferenceMode inference;
      c.ids = c.ids.clone();
    }
    forward().sum().backward();
    return all_grads(c);
  });
}

TEST_F(EmbeddingsGradient, WorksTwiceAndIsKeptWhenAskedTo) {
  same([](EmbeddingsCase& c, auto forward) {
    const auto loss = forward().pow(2).sum();
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
    EXPECT_THROW(loss.backward(), c10::Error);
    return all_grads(c);
  });
}

// The terms are those of the composition, but another graph adds them in another order.
TEST_F(EmbeddingsGradient, IsDifferentiableOnceMore) {
  const auto [ours, theirs] = both([](EmbeddingsCase& c, auto forward) {
    const auto& w = c.weights;
    const auto firsts = torch::autograd::grad({forward().pow(3).sum()},
                                              {w.tokens, w.positions, w.token_types, w.norm_weight},
                                              {}, c10::nullopt, /*create_graph=*/true);
    torch::Tensor loss = torch::zeros({});
    for (const auto& g : firsts) loss = loss + g.pow(2).sum();
    loss.backward();
    return all_grads(c);
  });
  EXPECT_TRUE(posenc::testing::within(posenc::testing::Op::Gradient, ours, theirs));
}

TEST_F(EmbeddingsGradient, IsSeenByHooksAndSummedWithThatOfOtherUses) {
  same([](EmbeddingsCase& c, auto forward) {
    auto& tokens = c.weights.tokens;
    tokens.mutable_grad() = torch::ones_like(tokens);
    torch::Tensor seen;
    tokens.register_hook([&](const torch::Tensor& g) { seen = g.clone(); });
    (forward().pow(2).sum() + tokens.exp().sum() + forward().sum()).backward();
    return torch::cat({seen.flatten(), all_grads(c)});
  });
}

TEST_F(EmbeddingsGradient, IsAddedInPlace) {
  EmbeddingsCase c = trained_bert();
  auto& tokens = c.weights.tokens;
  tokens.mutable_grad() = torch::ones_like(tokens);
  const void* const address = tokens.grad().data_ptr();
  const auto version = tokens.grad()._version();
  encoder_embeddings(c.ids, c.weights, c.how).pow(2).sum().backward();
  EXPECT_EQ(tokens.grad().data_ptr(), address);
  EXPECT_GT(tokens.grad()._version(), version);
}

void expect_refusal(const torch::Tensor& out, const char* text) {
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, text,
                      posenc::testing::message_of([&] { out.sum().backward(); }));
}

TEST_F(EmbeddingsGradient, IsRefusedAfterWhatItNeedsHasChanged) {
  const std::vector<std::function<torch::Tensor(EmbeddingsCase&)>> changes = {
      [](EmbeddingsCase& c) { return c.ids; },
      [](EmbeddingsCase& c) { return c.how.token_type_ids(); },
      [](EmbeddingsCase& c) { return c.how.position_ids(); },
      [](EmbeddingsCase& c) { return c.weights.norm_weight; },
      [](EmbeddingsCase& c) { return c.weights.norm_bias; }};
  for (const auto& change : changes) {
    EmbeddingsCase c = trained_bert();
    c.how.token_type_ids(torch::zeros({2, 3}, torch::kLong)).position_ids(torch::arange(3));
    for (const auto forward : {encoder_embeddings, encoder_embeddings_composed}) {
      const auto out = forward(c.ids, c.weights, c.how);
      {
        const torch::NoGradGuard no_grad;
        change(c).add_(0);
      }
      expect_refusal(out, "modified by an inplace operation");
    }
  }
  EmbeddingsCase c = trained_bert();  // nothing needs the tables
  const auto out = encoder_embeddings(c.ids, c.weights, c.how);
  {
    const torch::NoGradGuard no_grad;
    c.weights.tokens.add_(1);
  }
  out.sum().backward();
  EXPECT_TRUE(c.weights.tokens.grad().defined());
}

TEST_F(EmbeddingsGradient, OfIdsThatWereExchangedIsRefused) {
  EmbeddingsCase c = trained_bert();
  const auto out = encoder_embeddings(c.ids, c.weights, c.how);
  c.ids.set_data(torch::full({200, 3}, 2));
  expect_refusal(out, "needs the forward's 6 ids");
}

TEST_F(EmbeddingsGradient, ANodeThatIsCalledByHandChecksItsGradient) {
  for (const double p : {0.0, 0.5}) {
    EmbeddingsCase c = trained_bert();
    c.how.dropout(p).training(true);
    if (p == 0.0) c.weights.norm_weight = torch::Tensor();
    const auto out = encoder_embeddings(c.ids, c.weights, c.how);
    auto& node = *out.grad_fn();
    const torch::NoGradGuard no_grad;
    EXPECT_ERROR(node({torch::ones({400, 3, 5})}), c10::Error, "backward needs a gradient of 5");
  }
}

}  // namespace
}  // namespace posenc::functional::encoder_embeddings_gradient_test
