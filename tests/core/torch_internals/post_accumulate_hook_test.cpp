// PostAccumulateHook relies on a slot that LibTorch keeps for Python. A new LibTorch may call it at
// another moment, give it to several hooks, or check more when it is set.

#include "core/torch_internals/post_accumulate_hook.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <optional>
#include <stdexcept>
#include <vector>

namespace posenc::torch_internals {
namespace {

struct PostAccumulateHookTest : ::testing::Test {
  torch::Tensor weight = torch::ones({2, 3}).requires_grad_();
  int calls = 0;
  std::optional<PostAccumulateHook> hook;
  void set() {
    hook.emplace(weight, [this] { ++calls; });
  }
};

TEST_F(PostAccumulateHookTest, IsCalledOnceAPassAfterTheSum) {
  std::vector<torch::Tensor> seen;
  hook.emplace(weight, [&] { seen.push_back(weight.grad().clone()); });
  (weight.sum() + (weight * 2).sum()).backward();
  ASSERT_EQ(seen.size(), 1);
  EXPECT_TRUE(torch::equal(seen[0], torch::full({2, 3}, 3.0f)));
  weight.sum().backward();
  ASSERT_EQ(seen.size(), 2);
  EXPECT_TRUE(torch::equal(seen[1], torch::full({2, 3}, 4.0f)));
}

TEST_F(PostAccumulateHookTest, IsNotCalledForALeafOutsideTheGraph) {
  set();
  torch::ones({2}).requires_grad_().sum().backward();
  torch::autograd::grad({weight.sum()}, {weight});
  EXPECT_EQ(calls, 0);
}

// DataParallel replaces the gradient, which frees the first one during backward().
TEST_F(PostAccumulateHookTest, MayReplaceTheGradient) {
  const torch::Tensor buffer = torch::zeros({2, 3});
  const torch::Tensor before = weight * 2;
  hook.emplace(weight, [&] {
    buffer.copy_(weight.grad());
    weight.mutable_grad() = buffer;
  });
  before.sum().backward();
  EXPECT_TRUE(weight.grad().is_same(buffer));
  weight.sum().backward();
  EXPECT_TRUE(torch::equal(buffer, torch::full({2, 3}, 3.0f))) << "later passes add to it";
}

TEST_F(PostAccumulateHookTest, ItsExceptionsLeaveBackwardAsTheyAre) {
  hook.emplace(weight, [] { throw std::range_error("hook"); });
  EXPECT_THROW(weight.sum().backward(), std::range_error);
  hook.reset();
  EXPECT_NO_THROW(weight.sum().backward());
}

TEST_F(PostAccumulateHookTest, TakesTheOnlySlotUntilItEnds) {
  EXPECT_FALSE(PostAccumulateHook::has_one(weight));
  EXPECT_FALSE(PostAccumulateHook::has_one(torch::ones({2}))) << "without autograd's data";
  set();
  EXPECT_TRUE(PostAccumulateHook::has_one(weight));
  hook.reset();
  EXPECT_FALSE(PostAccumulateHook::has_one(weight));
  weight.sum().backward();
  EXPECT_EQ(calls, 0);
}

TEST_F(PostAccumulateHookTest, LeavesAHookAloneThatReplacedIt) {
  set();
  const PostAccumulateHook other(weight, [this] { calls += 10; });
  hook.reset();
  EXPECT_TRUE(PostAccumulateHook::has_one(weight));
  weight.sum().backward();
  EXPECT_EQ(calls, 10);
}

TEST_F(PostAccumulateHookTest, MayBeMoved) {
  set();
  {
    const PostAccumulateHook moved = std::move(*hook);
    hook.reset();
    weight.sum().backward();
    EXPECT_EQ(calls, 1);
  }
  EXPECT_FALSE(PostAccumulateHook::has_one(weight));
}

TEST_F(PostAccumulateHookTest, WaitsOnALeafThatRequiresNoGradientYet) {
  weight = torch::ones({2, 3});
  set();
  weight.requires_grad_(true);
  weight.sum().backward();
  EXPECT_EQ(calls, 1);
}

// zero_grad() calls detach_() on the gradient, which refuses views of autograd's.
TEST_F(PostAccumulateHookTest, AGradientMadeBySetIsNoView) {
  const torch::Tensor flat = torch::zeros({16});
  weight.mutable_grad() =
      torch::empty({0}).set_(flat.storage(), /*storage_offset=*/4, {2, 3}, {3, 1});
  torch::optim::SGD optimizer({weight}, 0.1);
  weight.sum().backward();
  EXPECT_EQ(flat.sum().item<double>(), 6.0);
  EXPECT_NO_THROW(optimizer.zero_grad(/*set_to_none=*/false));
  EXPECT_EQ(flat.sum().item<double>(), 0.0);
  weight.mutable_grad() = flat.narrow(0, 4, 6).view({2, 3});
  EXPECT_THROW(optimizer.zero_grad(/*set_to_none=*/false), c10::Error);
}

}  // namespace
}  // namespace posenc::torch_internals
