// Destinations of embed()'s gradient: new, existing, sparse, shared, with hooks, repeated.

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/utils.h>

#include "posenc/positions/functional/embed.h"
#include "positions/functional/embed/composed.h"
#include "support/compare.h"
#include "support/seed.h"

namespace posenc::functional {
namespace {

using posenc::testing::bit_equal;
using Forward = torch::Tensor (*)(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&,
                                  const EmbedFuncOptions&);

struct EmbedGradient : ::testing::Test {
  torch::Tensor ids = torch::tensor({{1, 4, 1}, {0, 6, 1}});
  torch::Tensor table = torch::randn({3, 5});
  torch::Tensor values = torch::randn({7, 5});
  EmbedFuncOptions how = EmbedFuncOptions().scale(Scale::SqrtDim).dropout(0.3).training(true);

  // Runs `body` with both functions, each on its own weight; the results must be equal.
  template <typename Body>
  void same(Body body) {
    const auto run = [&](Forward forward) {
      auto weight = values.clone().requires_grad_();
      torch::manual_seed(testing::seed(4));
      return body(weight, [&](const torch::Tensor& w) { return forward(ids, w, table, how); });
    };
    EXPECT_TRUE(bit_equal(run(embed), run(embed_composed)));
  }
};

TEST_F(EmbedGradient, AddsToAnExistingOneInPlace) {
  auto weight = values.clone().requires_grad_();
  const auto existing = torch::randn({7, 5});
  weight.mutable_grad() = existing.clone();
  const void* const address = weight.grad().data_ptr();
  const auto version = weight.grad()._version();
  embed(ids, weight, table).sum().backward();
  EXPECT_EQ(weight.grad().data_ptr(), address);
  EXPECT_GT(weight.grad()._version(), version);
  EXPECT_TRUE(bit_equal(weight.grad()[3], existing[3]));
  EXPECT_TRUE(bit_equal(weight.grad()[4], existing[4] + 1));
  EXPECT_TRUE(bit_equal(weight.grad()[1], existing[1] + 3));
}

TEST_F(EmbedGradient, IsSummedWithThatOfOtherUses) {
  same([](torch::Tensor& w, auto forward) {  // tied: summed before it is added
    w.mutable_grad() = torch::full_like(w, 1e-3);
    (forward(w).pow(2).sum() + w.exp().sum() + forward(w).sum()).backward();
    return w.grad();
  });
}

TEST_F(EmbedGradient, IsReturnedWhereItIsAskedFor) {
  same([](torch::Tensor& w, auto forward) {
    w.mutable_grad() = torch::ones_like(w);
    const auto got = torch::autograd::grad({forward(w).pow(2).sum()}, {w})[0];
    EXPECT_TRUE(bit_equal(w.grad(), torch::ones_like(w)));  // unchanged
    return got;
  });
  same([](torch::Tensor& w, auto forward) {
    w.mutable_grad() = torch::ones_like(w);
    forward(w).pow(2).sum().backward({}, c10::nullopt, false, std::vector<torch::Tensor>{w});
    return w.grad();
  });
}

TEST_F(EmbedGradient, IsSeenByHooks) {
  same([](torch::Tensor& w, auto forward) {
    w.mutable_grad() = torch::ones_like(w);
    torch::Tensor seen;
    w.register_hook([&](const torch::Tensor& g) { seen = g.clone(); });
    forward(w).pow(2).sum().backward();
    return torch::cat({seen, w.grad()});
  });
}

TEST_F(EmbedGradient, WorksTwiceAndIsKeptWhenAskedTo) {
  same([](torch::Tensor& w, auto forward) {
    const auto loss = forward(w).pow(2).sum();
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
    EXPECT_THROW(loss.backward(), c10::Error);
    return w.grad();
  });
}

TEST_F(EmbedGradient, IsDifferentiableOnceMore) {
  for (const auto dtype : {torch::kFloat, torch::kBFloat16}) {
    values = values.to(dtype);
    table = table.to(dtype);
    same([](torch::Tensor& w, auto forward) {
      const auto g =
          torch::autograd::grad({forward(w).pow(3).sum()}, {w}, {}, c10::nullopt, true)[0];
      g.pow(2).sum().backward();
      return w.grad();
    });
  }
}

TEST_F(EmbedGradient, SparseIsTheDenseOnesRowsCoalesced) {
  how.sparse(true).padding_idx(4);
  auto weight = values.clone().requires_grad_();
  torch::manual_seed(testing::seed(2));
  embed(ids, weight, table, how).pow(2).sum().backward();
  EXPECT_TRUE(weight.grad().is_sparse());
  EXPECT_TRUE(weight.grad().is_coalesced());
  EXPECT_TRUE(bit_equal(weight.grad().indices(), torch::tensor({{0, 1, 6}})));
  auto dense = values.clone().requires_grad_();
  torch::manual_seed(testing::seed(2));
  embed(ids, dense, table, EmbedFuncOptions(how).sparse(false)).pow(2).sum().backward();
  EXPECT_TRUE(bit_equal(weight.grad().to_dense(), dense.grad()));
  torch::manual_seed(testing::seed(2));
  embed(ids, weight, table, how).pow(2).sum().backward();  // onto a sparse gradient
  EXPECT_TRUE(bit_equal(weight.grad().to_dense(), dense.grad() * 2));
  torch::manual_seed(testing::seed(2));
  dense.mutable_grad().zero_();
  embed(ids, dense, table, how).pow(2).sum().backward();  // onto a dense gradient
  EXPECT_TRUE(bit_equal(dense.grad(), weight.grad().to_dense() / 2));
}

TEST_F(EmbedGradient, IsRefusedAfterTheIdsChanged) {
  auto weight = values.clone().requires_grad_();
  const auto out = embed(ids, weight, table);
  ids.add_(1);
  EXPECT_ERROR(out.sum().backward(), c10::Error, "modified by an inplace operation");
}

TEST_F(EmbedGradient, IsRecordedOnlyIfRequired) {
  auto weight = values.clone().requires_grad_();
  {
    const torch::NoGradGuard guard;
    EXPECT_FALSE(embed(ids, weight, table).requires_grad());
  }
  {
    const c10::InferenceMode guard;
    EXPECT_TRUE(embed(ids, weight, table).is_inference());
  }
  EXPECT_EQ(embed(ids, weight, table).grad_fn()->name(), "EmbedBackward");
}

}  // namespace
}  // namespace posenc::functional
