// GradAccess grants access to a .grad only if the result cannot be distinguished from
// AccumulateGrad's. A new LibTorch may change the node's mutex, the engine's list of requested
// inputs, the kinds of hooks, or the metadata that it compares. Each test covers one of these
// conditions; functional/embed_accumulate_test.cpp compares the results of all of them with
// AccumulateGrad's.

#include "core/torch_internals/grad_access.h"

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/utils.h>

#include <functional>
#include <vector>

#include "core/torch_internals/node_pointer.h"

namespace posenc::torch_internals {
namespace {

namespace autograd = torch::autograd;

// The node of y = w. It records whether it got access, and then adds to .grad itself.
struct Probe : autograd::Node {
  autograd::variable_list apply(autograd::variable_list&& grads) override {
    GradAccess access(*this, {2, 3}, torch::kFloat);
    given = static_cast<bool>(access);
    if (!given) return grads;
    if (!access.grad().defined()) {
      access.grad() = grads[0].clone();
    } else {
      in_place = access.may_add_in_place(grads[0]);
      access.grad() = grads[0] + access.grad();  // in this order it may be sparse
    }
    return {torch::Tensor()};
  }
  bool given = false, in_place = false;
};

struct GradAccessTest : ::testing::Test {
  torch::Tensor weight = torch::ones({2, 3}).requires_grad_();
  NodePointer<Probe> probe;

  torch::Tensor forward() {
    probe = make_node<Probe>();
    probe->set_next_edges(autograd::collect_next_edges(weight));
    auto out = weight.detach().clone();
    autograd::set_history(out, probe);
    return out;
  }

  // Whether access is granted in a backward after `arrange`.
  bool is_given(const std::function<void()>& arrange = [] {}) {
    const auto out = forward();
    arrange();
    out.sum().backward();
    return probe->given;
  }
};

struct Listener : autograd::FunctionPreHook, autograd::FunctionPostHook {
  autograd::variable_list operator()(const autograd::variable_list& grads) override {
    return grads;
  }
  autograd::variable_list operator()(const autograd::variable_list& outputs,
                                     const autograd::variable_list&) override {
    return outputs;
  }
};

struct AfterAccumulation : autograd::PostAccumulateGradHook {
  explicit AfterAccumulation(std::vector<torch::Tensor>& seen) : seen(seen) {}
  void operator()(const autograd::Variable& variable) override {
    seen.push_back(variable.grad().clone());
  }
  std::vector<torch::Tensor>& seen;
};

TEST_F(GradAccessTest, IsGivenInAnOrdinaryBackward) {
  EXPECT_TRUE(is_given());
  EXPECT_TRUE(torch::equal(weight.grad(), torch::ones({2, 3})));
  EXPECT_TRUE(is_given());
  EXPECT_TRUE(probe->in_place);
  EXPECT_TRUE(torch::equal(weight.grad(), torch::full({2, 3}, 2.0f)));
}

TEST_F(GradAccessTest, HoldsTheAccumulatorsLock) {
  struct Lock : autograd::Node {
    static std::mutex& of(autograd::Node& node) { return node.*(&Lock::mutex_); }
  };
  struct Locking : Probe {
    autograd::variable_list apply(autograd::variable_list&& grads) override {
      auto& lock = Lock::of(*next_edge(0).function);
      const GradAccess access(*this, {2, 3}, torch::kFloat);
      held = !lock.try_lock();
      if (!held) lock.unlock();
      return grads;
    }
    bool held = false;
  };
  auto node = make_node<Locking>();
  node->set_next_edges(autograd::collect_next_edges(weight));
  auto out = weight.detach().clone();
  autograd::set_history(out, node);
  out.sum().backward();
  EXPECT_TRUE(node->held);
}

TEST_F(GradAccessTest, IsNotGivenToOtherKindsOfBackward) {
  auto out = forward();
  autograd::grad({out.sum()}, {weight});
  EXPECT_FALSE(probe->given) << "grad()";
  out = forward();
  autograd::backward({out.sum()}, {}, /*retain_graph=*/std::nullopt, /*create_graph=*/false,
                     {weight});
  EXPECT_FALSE(probe->given) << "inputs=";
  out = forward();
  out.sum().backward({}, /*retain_graph=*/true, /*create_graph=*/true);
  EXPECT_FALSE(probe->given) << "create_graph";
  weight = torch::ones({2, 3}).requires_grad_();  // with an accumulator that `out` does not hold
  forward();
  (*probe)({torch::ones({2, 3})});
  EXPECT_FALSE(probe->given) << "a call of the node";
  autograd::AnomalyMode::set_enabled(true, false);
  const bool given = is_given();
  autograd::AnomalyMode::set_enabled(false);
  EXPECT_FALSE(given) << "anomaly detection";
}

TEST_F(GradAccessTest, IsNotGivenWhereTheLeafHasOtherUses) {
  const auto out = forward(), other = weight * 2;
  (out.sum() + other.sum()).backward();
  EXPECT_FALSE(probe->given);
}

TEST_F(GradAccessTest, IsNotGivenWithHooks) {
  EXPECT_FALSE(is_given([&] { probe->add_post_hook(std::make_unique<Listener>()); }));
  const auto with = [&](const std::function<void(autograd::Node&)>& listen) {
    weight = torch::ones({2, 3}).requires_grad_();
    return is_given([&] { listen(*probe->next_edge(0).function); });
  };
  EXPECT_TRUE(with([](autograd::Node&) {}));
  EXPECT_FALSE(with([](autograd::Node& node) { node.add_pre_hook(std::make_unique<Listener>()); }));
  EXPECT_FALSE(with([](autograd::Node& node) {
    node.add_retains_grad_hook(std::make_unique<Listener>(), /*output_idx=*/0);
  }));
  EXPECT_FALSE(
      with([](autograd::Node& node) { node.add_post_hook(std::make_unique<Listener>()); }));
  EXPECT_FALSE(with([&](autograd::Node&) {
    weight.register_hook([](const torch::Tensor& grad) { return grad; });
  }));
}

// AccumulateGrad calls them although the node returned no gradient: once, after it has added.
TEST_F(GradAccessTest, IsGivenBeforePostAccumulateHooks) {
  std::vector<torch::Tensor> seen;
  autograd::impl::set_post_acc_grad_hooks(weight, std::make_unique<AfterAccumulation>(seen));
  EXPECT_EQ(is_given(), kHooksFollowUndefinedGradients);
  EXPECT_EQ(is_given(), kHooksFollowUndefinedGradients);
  EXPECT_EQ(probe->in_place, kHooksFollowUndefinedGradients);
  ASSERT_EQ(seen.size(), 2);
  EXPECT_TRUE(torch::equal(seen[0], torch::ones({2, 3})));
  EXPECT_TRUE(torch::equal(seen[1], torch::full({2, 3}, 2.0f)));
}

TEST_F(GradAccessTest, IsNotGivenToALeafChangedSinceTheForward) {
  EXPECT_FALSE(is_given([&] { weight.requires_grad_(false); })) << "frozen";
  weight = torch::ones({2, 3}).requires_grad_();
  EXPECT_TRUE(is_given([&] { weight.set_data(torch::zeros({2, 3})); })) << "other values";
  const auto out = forward();
  weight.set_data(torch::ones({4, 3}));
  out.sum().backward();
  EXPECT_FALSE(probe->given) << "other sizes";
  weight = torch::ones({2, 3}).requires_grad_();
  EXPECT_FALSE(is_given([&] { weight.set_data(torch::ones({2, 3})._neg_view()); })) << "not plain";
}

TEST_F(GradAccessTest, MayNotAddInPlaceToAnUnusualGradient) {
  const auto in_place = [&](const torch::Tensor& grad) {
    weight = torch::ones({2, 3}).requires_grad_();
    weight.mutable_grad() = grad;
    EXPECT_TRUE(is_given());
    return probe->in_place;
  };
  EXPECT_TRUE(in_place(torch::ones({2, 3})));
  EXPECT_FALSE(in_place(torch::ones({3, 2}).t()));
  EXPECT_FALSE(in_place(torch::ones({1, 1}).expand({2, 3})));
  EXPECT_FALSE(in_place(torch::ones({2, 3}).requires_grad_()));
  EXPECT_FALSE(in_place(torch::ones({2, 3}).to_sparse()));
  EXPECT_FALSE(in_place(torch::ones({1, 3})));
  EXPECT_FALSE(in_place(torch::ones({2, 3}, torch::kDouble)));
  const auto made_in_inference = [] {
    const c10::InferenceMode guard;
    return torch::ones({2, 3});
  };
  EXPECT_FALSE(in_place(made_in_inference()));
}

TEST_F(GradAccessTest, MayNotAddAGradientToItselfInPlace) {
  const auto own = torch::ones({2, 3});
  weight.mutable_grad() = own;
  forward().backward(own);
  EXPECT_TRUE(probe->given);
  EXPECT_FALSE(probe->in_place);
}

}  // namespace
}  // namespace posenc::torch_internals
