// A backward that adds to the weight's .grad directly, against AccumulateGrad, which it replaces:
// whatever happened in between to the weight, its gradient or the ids, and whichever hooks are
// installed.

#include <gtest/gtest.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/utils.h>

#include <functional>
#include <thread>

#include "core/torch_internals/grad_access.h"
#include "posenc/positions/functional/embed.h"
#include "positions/functional/embed/composed.h"
#include "support/compare.h"

namespace posenc::functional::embed_accumulate_test {
namespace {

namespace autograd = torch::autograd;
using posenc::testing::bit_equal;
using Forward = std::function<torch::Tensor(const torch::Tensor&)>;
using Body = std::function<torch::Tensor(torch::Tensor& weight, const Forward& forward)>;

constexpr int64_t kRows = 7, kDim = 5;

struct EmbedAccumulate : ::testing::Test {
  torch::Tensor ids = torch::tensor({{1, 4, 1}, {0, 6, 1}});
  torch::Tensor table = torch::randn({3, kDim});
  torch::Tensor values = torch::randn({kRows, kDim});
  EmbedFuncOptions how = EmbedFuncOptions().scale(Scale::SqrtDim);

  using Function = torch::Tensor (*)(const torch::Tensor&, const torch::Tensor&,
                                     const torch::Tensor&, const EmbedFuncOptions&);
  // What `body` returns for a new weight, or "throws".
  std::pair<torch::Tensor, bool> outcome(Function function, const Body& body) {
    auto weight = values.clone().requires_grad_();
    const auto forward = [&](const torch::Tensor& w) { return function(ids, w, table, how); };
    try {
      return {body(weight, forward), false};
    } catch (const std::exception&) {
      return {torch::Tensor(), true};
    }
  }

  void same(const Body& body) {
    const auto ours = outcome(embed, body), theirs = outcome(embed_composed, body);
    EXPECT_EQ(ours.second, theirs.second) << "one of them throws";
    EXPECT_EQ(ours.first.defined(), theirs.first.defined());
    if (ours.first.defined() && theirs.first.defined()) {
      EXPECT_TRUE(bit_equal(ours.first.to_dense(), theirs.first.to_dense()));
    }
  }

  // The same for a backward that starts with `existing` as the gradient.
  void same_onto(const std::function<torch::Tensor()>& existing) {
    same([&](torch::Tensor& w, const Forward& forward) {
      w.mutable_grad() = existing();
      forward(w).pow(2).sum().backward();
      return w.grad();
    });
  }
};

TEST_F(EmbedAccumulate, OntoAGradientOfAnotherShapeIsPyTorchsError) {
  const auto grown = [this](const torch::Tensor& more) {
    auto weight = values.clone().requires_grad_();
    embed(ids, weight, table, how).sum().backward();
    weight.set_data(more);
    const auto positions = torch::zeros({3, more.size(1)});
    embed(ids, weight, positions, how).sum().backward();
  };
  EXPECT_ERROR(grown(torch::randn({kRows + 3, kDim})), c10::Error, "must match the size");
  EXPECT_ERROR(grown(torch::randn({2 * kRows, kDim})), c10::Error, "must match the size");
  EXPECT_ERROR(grown(torch::randn({kRows, kDim - 2})), c10::Error, "must match the size");
  for (const auto& sizes : std::vector<std::vector<int64_t>>{{kRows + 1, kDim},
                                                             {kRows - 1, kDim},
                                                             {kRows, kDim + 1},
                                                             {kRows * kDim},
                                                             {1, kRows, kDim}}) {
    SCOPED_TRACE(c10::str(sizes));
    same([&](torch::Tensor& w, const Forward& forward) {
      const auto existing = torch::ones(sizes);
      torch::autograd::impl::get_autograd_meta(w)->grad_ = existing;
      forward(w).pow(2).sum().backward();
      return w.grad();
    });
  }
}

TEST_F(EmbedAccumulate, OntoGradientsOfEveryKind) {
  same_onto([] { return torch::ones({kRows, kDim}); });
  same_onto([] { return torch::ones({kDim, kRows}).t(); });
  same_onto([] { return torch::ones({kRows, kDim + 2}).slice(1, 0, kDim); });
  same_onto([] { return torch::ones({1, kDim}).expand({kRows, kDim}); });
  same_onto([] { return torch::ones({kRows, kDim}).to_sparse(1); });
  same_onto([] { return torch::ones({kRows, kDim}).requires_grad_(); });
  same_onto([] { return torch::ones({kRows, kDim})._neg_view(); });
  same_onto([] {
    const c10::InferenceMode guard;
    return torch::ones({kRows, kDim});
  });
  for (const auto dtype : {torch::kDouble, torch::kHalf}) {
    same([&](torch::Tensor& w, const Forward& forward) {
      autograd::impl::get_autograd_meta(w)->grad_ = torch::ones({kRows, kDim}, dtype);
      forward(w).pow(2).sum().backward();
      EXPECT_EQ(w.grad().scalar_type(), dtype);
      return w.grad();
    });
  }
}

// The incoming gradient shares memory with the gradient that it is added to.
TEST_F(EmbedAccumulate, OntoTheIncomingGradientItself) {
  ids = torch::tensor({{3, 2, 1, 0, 6, 5, 0}});
  table = torch::randn({kRows, kDim});
  same([](torch::Tensor& w, const Forward& forward) {
    w.mutable_grad() = torch::arange(1, 1 + kRows * kDim, torch::kFloat).view({kRows, kDim});
    forward(w).backward(w.grad().view({1, kRows, kDim}));
    return w.grad();
  });
}

TEST_F(EmbedAccumulate, LeavesAWeightAloneThatWasFrozenAfterTheForward) {
  for (const bool sparse : {false, true}) {
    how.sparse(sparse);
    same([](torch::Tensor& w, const Forward& forward) {
      w.mutable_grad() = torch::ones_like(w);
      const auto loss = forward(w).pow(2).sum();
      w.requires_grad_(false);
      loss.backward();
      return w.grad();
    });
    same([](torch::Tensor& w, const Forward& forward) {
      const auto loss = forward(w).pow(2).sum();
      w.requires_grad_(false);
      loss.backward();
      return w.grad();
    });
  }
}

TEST_F(EmbedAccumulate, RejectsAWeightThatIsNoLongerALeaf) {
  same([](torch::Tensor& w, const Forward& forward) {
    w.mutable_grad() = torch::ones_like(w);
    const auto loss = forward(w).pow(2).sum();
    const auto other = torch::ones_like(w).requires_grad_();
    w.requires_grad_(false).mul_(other);
    loss.backward();
    return torch::ones({1});
  });
}

TEST_F(EmbedAccumulate, ChecksAWeightThatGrewBetweenForwardAndBackward) {
  for (const int64_t rows : {kRows - 1, kRows + 9}) {
    same([&](torch::Tensor& w, const Forward& forward) {
      const auto loss = forward(w).pow(2).sum();
      w.set_data(torch::ones({rows, kDim}));
      w.mutable_grad() = torch::ones({rows, kDim});
      loss.backward();
      return w.grad();
    });
    same(
        [&](torch::Tensor& w, const Forward& forward) {  // the old shape's accumulator still exists
          const auto old = forward(w).sum();
          w.set_data(torch::ones({rows, kDim}));
          w.mutable_grad() = torch::ones({rows, kDim});
          ids = ids.clamp_max(rows - 1);
          forward(w).pow(2).sum().backward();
          return w.grad();
        });
  }
  same([&](torch::Tensor& w, const Forward& forward) {
    const auto loss = forward(w).pow(2).sum();
    w.set_data(w.to(torch::kDouble));
    w.mutable_grad() = torch::ones({kRows, kDim}, torch::kDouble);
    loss.backward();
    return w.grad();
  });
}

TEST_F(EmbedAccumulate, KeepsTheTypeThatGradientsWereGiven) {
  for (const auto dtype : {torch::kDouble, torch::kBFloat16}) {
    same([&](torch::Tensor& w, const Forward& forward) {
      w.set_grad_dtype(dtype);
      w.mutable_grad() = torch::ones({kRows, kDim}, dtype);
      forward(w).pow(2).sum().backward();
      EXPECT_EQ(w.grad().scalar_type(), dtype);
      return w.grad();
    });
    how.sparse(true);
    ids = torch::tensor({{1, 4, 2}, {0, 6, 3}});  // no repeats: their sums round differently
    same([&](torch::Tensor& w, const Forward& forward) {
      w.set_grad_dtype(dtype);
      forward(w).pow(2).sum().backward();
      return w.grad();
    });
    how.sparse(false);
  }
}

// A reused buffer that a program has filled with the next batch; autograd's version counter does
// not notice.
TEST_F(EmbedAccumulate, SkipsIdsThatLeftTheVocabularyAsPyTorchDoes) {
  for (const int64_t bad : {int64_t{-1}, kRows, int64_t{1} << 40, INT64_MIN, INT64_MAX}) {
    for (const bool onto_existing : {false, true}) {
      SCOPED_TRACE(c10::str(bad, " ", onto_existing));
      same([&](torch::Tensor& w, const Forward& forward) {
        std::vector<int64_t> buffer = {1, 4, 1, 0, 6, 1};
        ids = torch::from_blob(buffer.data(), {2, 3}, torch::kLong);
        const auto out = forward(w);
        if (onto_existing) w.mutable_grad() = torch::ones_like(w);
        buffer[2] = bad;
        out.sum().backward();
        return w.grad();
      });
    }
  }
  std::vector<int32_t> many(3000, 2);
  many[17] = 6;
  const auto narrow = torch::from_blob(many.data(), {1000, 3}, torch::kInt);
  auto w = values.clone().requires_grad_();
  const auto out = embed(narrow, w, table);
  many[17] = INT32_MAX;
  many[2999] = -7;
  out.sum().backward();
  EXPECT_TRUE(bit_equal(w.grad()[2], torch::full({kDim}, 2998.0f)));
  EXPECT_EQ(w.grad().count_nonzero().item<int64_t>(), kDim);
}

using Node = autograd::Node;

// The node that passes the weight its gradient: ours, or the look-up in the composition.
Node* last_node(const torch::Tensor& out) {
  Node* node = out.grad_fn().get();
  while (dynamic_cast<autograd::AccumulateGrad*>(node->next_edge(0).function.get()) == nullptr)
    node = node->next_edge(0).function.get();
  return node;
}

struct Listener : autograd::FunctionPreHook, autograd::FunctionPostHook {
  explicit Listener(torch::Tensor& seen) : seen(seen) {}
  autograd::variable_list operator()(const autograd::variable_list& grads) override {
    seen = grads[0].defined() ? grads[0].clone() : torch::full({kRows, kDim}, -1.0f);
    return grads;
  }
  autograd::variable_list operator()(const autograd::variable_list& outputs,
                                     const autograd::variable_list&) override {
    seen = !outputs.empty() && outputs[0].defined() ? outputs[0].to_dense()
                                                    : torch::full({kRows, kDim}, -1.0f);
    return outputs;
  }
  torch::Tensor& seen;
};

struct AfterAccumulation : autograd::PostAccumulateGradHook {
  explicit AfterAccumulation(torch::Tensor& seen) : seen(seen) {}
  void operator()(const autograd::Variable& variable) override {
    seen = variable.grad().to_dense().clone();
  }
  torch::Tensor& seen;
};

TEST_F(EmbedAccumulate, IsSeenByEveryKindOfHook) {
  // `listen` installs a hook that records what it sees.
  const auto seen_by = [&](const auto& listen) {
    for (const bool sparse : {false, true}) {
      how.sparse(sparse);
      same([&](torch::Tensor& w, const Forward& forward) {
        torch::Tensor seen = torch::full({kRows, kDim}, -2.0f);
        if (!sparse) w.mutable_grad() = torch::ones_like(w);
        const auto out = forward(w);
        const auto accumulator = autograd::impl::grad_accumulator(w).get();
        listen(w, out, accumulator, seen);
        out.pow(2).sum().backward();
        return torch::cat({seen.to_dense(), w.grad().to_dense()});
      });
    }
  };
  seen_by([](torch::Tensor& w, const torch::Tensor&, Node*, torch::Tensor& seen) {
    w.register_hook([&](const torch::Tensor& g) { seen = g.to_dense().clone(); });
  });
  seen_by([](torch::Tensor& w, const torch::Tensor&, Node*, torch::Tensor& seen) {
    w.register_hook([&](const torch::Tensor& g) {
      seen = g.to_dense().clone();
      return g * 2;
    });
  });
  seen_by([](torch::Tensor& w, const torch::Tensor&, Node*, torch::Tensor& seen) {
    autograd::impl::set_post_acc_grad_hooks(w, std::make_unique<AfterAccumulation>(seen));
  });
  seen_by([](torch::Tensor&, const torch::Tensor&, Node* accumulator, torch::Tensor& seen) {
    accumulator->add_post_hook(std::make_unique<Listener>(seen));
  });
  seen_by([](torch::Tensor&, const torch::Tensor& out, Node*, torch::Tensor& seen) {
    last_node(out)->add_post_hook(std::make_unique<Listener>(seen));
  });
  seen_by([](torch::Tensor&, const torch::Tensor& out, Node*, torch::Tensor& seen) {
    out.retain_grad();
    out.register_hook(
        [&](const torch::Tensor& g) { seen = g.sum(0).sum(0).expand({kRows, kDim}); });
  });
}

// A -0.0 remains in rows without a token only if nothing was added to them: AccumulateGrad adds a
// tensor of zeros and turns it into 0.0.
bool kept_negative_zeros(const torch::Tensor& grad) {
  return grad.index_select(0, torch::tensor({2, 3, 5})).signbit().all().item<bool>();
}

// A hook that sees the sum, such as those of DataParallel, needs no tensor of the table's size,
// except before LibTorch 2.13.
TEST_F(EmbedAccumulate, AddsInPlaceBeforeAPostAccumulateHook) {
  auto w = values.clone().requires_grad_();
  torch::Tensor seen;
  autograd::impl::set_post_acc_grad_hooks(w, std::make_unique<AfterAccumulation>(seen));
  w.mutable_grad() = torch::full({kRows, kDim}, -0.0f);
  embed(ids, w, table, how).pow(2).sum().backward();
  EXPECT_EQ(kept_negative_zeros(w.grad()), torch_internals::kHooksFollowUndefinedGradients);
  EXPECT_TRUE(bit_equal(seen, w.grad()));
  auto composed = values.clone().requires_grad_();
  composed.mutable_grad() = torch::full({kRows, kDim}, -0.0f);
  embed_composed(ids, composed, table, how).pow(2).sum().backward();
  EXPECT_FALSE(kept_negative_zeros(composed.grad())) << "this test cannot fail";
  EXPECT_TRUE(bit_equal(w.grad() + 0.0, composed.grad()));
}

TEST_F(EmbedAccumulate, EveryKindOfBackward) {
  how = EmbedFuncOptions();
  const auto loss = [](const torch::Tensor& out) { return out.pow(2).sum(); };
  same([&](torch::Tensor& w, const Forward& forward) {  // anomaly detection
    w.mutable_grad() = torch::ones_like(w);
    const autograd::DetectAnomalyGuard guard;
    loss(forward(w)).backward();
    return w.grad();
  });
  same([&](torch::Tensor& w, const Forward& forward) {  // inputs= of another leaf
    w.mutable_grad() = torch::ones_like(w);
    auto other = torch::ones({1}).requires_grad_();
    (loss(forward(w)) * other)
        .sum()
        .backward({}, c10::nullopt, false, std::vector<torch::Tensor>{other});
    return torch::cat({w.grad().flatten(), other.grad()});
  });
  same([&](torch::Tensor& w, const Forward& forward) {  // create_graph
    w.mutable_grad() = torch::ones_like(w);
    loss(forward(w)).backward({}, true, /*create_graph=*/true);
    const auto result = w.grad().detach().clone();
    w.mutable_grad().reset();  // breaks the reference cycle
    return result;
  });
  same([&](torch::Tensor& w, const Forward& forward) {  // the node is called directly
    w.mutable_grad() = torch::ones_like(w);
    const auto out = forward(w);
    const auto returned = (*last_node(out))({torch::ones({2, 3, kDim})});
    return torch::cat({w.grad(), returned[0]});
  });
  same([&](torch::Tensor& w, const Forward& forward) {  // another thread
    w.mutable_grad() = torch::ones_like(w);
    const auto sum = loss(forward(w));
    std::thread([&] { sum.backward(); }).join();
    return w.grad();
  });
  same([&](torch::Tensor& w,
           const Forward& forward) {  // a leaf whose accumulator is also held elsewhere
    w.mutable_grad() = torch::ones_like(w);
    const auto held = autograd::impl::grad_accumulator(w);
    loss(forward(w)).backward();
    return w.grad();
  });
  same([&](torch::Tensor& w, const Forward& forward) {  // through a view of the leaf
    w.mutable_grad() = torch::ones_like(w);
    loss(forward(w.view({kRows, kDim}))).backward();
    return w.grad();
  });
}

TEST_F(EmbedAccumulate, FromManyThreadsLosesNothing) {
  auto w = values.clone().requires_grad_();
  w.mutable_grad() = torch::zeros_like(w);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int step = 0; step < 50; ++step) embed(ids, w, table).sum().backward();
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(bit_equal(w.grad()[1], torch::full({kDim}, 600.0f)));
  EXPECT_TRUE(bit_equal(w.grad()[6], torch::full({kDim}, 200.0f)));
}

}  // namespace
}  // namespace posenc::functional::embed_accumulate_test
