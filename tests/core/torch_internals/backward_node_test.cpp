// What BackwardNode and NodePointer (node_pointer.h) need of autograd's engine: edges, ownership,
// locks, saved tensors and their versions.
#include "core/torch_internals/backward_node.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <thread>

#include "support/compare.h"

namespace posenc::torch_internals {
namespace {

// y = x * factor for a constant factor, and nothing for the second input.
struct Scaled : BackwardNode {
  Scaled() : BackwardNode("ScaledBackward") {}
  Gradients backward(const at::Tensor& grad) override {
    ++calls;
    check_not_released(!released);
    requested = {wants(0), wants(1)};
    return {wants(0) ? grad * factor.unpack() : at::Tensor(), at::Tensor()};
  }
  void release() override {
    released = true;
    factor.reset_data();
  }
  SavedVariable factor;
  std::vector<bool> requested;
  int calls = 0;
  bool released = false;
};

struct Scaling {
  Scaling(const at::Tensor& x, const at::Tensor& factor, const at::Tensor& unused = {}) {
    {
      const at::NoGradGuard no_grad;
      y = x * factor;
    }
    auto made = make_node<Scaled>();
    made->factor = save_for_backward(factor);
    node = made.get();
    set_history(y, std::move(made), {x, unused});
  }
  at::Tensor y;
  Scaled* node;
};

TEST(BackwardNode, SendsGradientsAlongItsEdges) {
  const auto x = torch::randn({3}, torch::requires_grad()), factor = torch::randn({3});
  const Scaling scaling(x, factor);
  EXPECT_TRUE(scaling.y.requires_grad());
  EXPECT_EQ(scaling.y.grad_fn()->name(), "ScaledBackward");
  scaling.y.sum().backward();
  EXPECT_TRUE(testing::bit_equal(x.grad(), factor));
}

TEST(BackwardNode, KnowsWhichGradientsAreRequested) {
  const auto x = torch::randn({3}, torch::requires_grad()), factor = torch::randn({3});
  const auto other = torch::randn({2}, torch::requires_grad());
  const Scaling scaling(x, factor, other);
  torch::autograd::grad({scaling.y.sum()}, {x}, {}, /*retain_graph=*/true);
  EXPECT_EQ(scaling.node->requested, (std::vector<bool>{true, false}));
  const Scaling constant(torch::randn({3}), factor);  // an input without gradient
  EXPECT_FALSE(constant.node->next_edge(0).is_valid());
}

TEST(BackwardNode, IsNotCalledWithoutAGradient) {
  const auto x = torch::randn({3}, torch::requires_grad());
  const Scaling scaling(x, torch::randn({3}));
  const Gradients none = (*scaling.node)({at::Tensor()});
  EXPECT_EQ(none.size(), 2u);
  EXPECT_FALSE(none[0].defined());
  EXPECT_EQ(scaling.node->calls, 0);
}

TEST(BackwardNode, FreesWhatItSavedAndRefusesASecondBackward) {
  const auto x = torch::randn({3}, torch::requires_grad());
  const Scaling scaling(x, torch::randn({3}));
  const auto loss = scaling.y.sum();
  loss.backward();
  EXPECT_TRUE(scaling.node->released);
  EXPECT_THROW(scaling.y.sum().backward(), c10::Error);
}

TEST(BackwardNode, NoticesChangesOfWhatItSaved) {
  const auto x = torch::randn({3}, torch::requires_grad());
  const auto factor = torch::randn({3});
  const Scaling scaling(x, factor);
  factor.add_(1);
  EXPECT_THROW(scaling.y.sum().backward(), c10::Error);
}

TEST(BackwardNode, RunsOnceAtATime) {
  const auto x = torch::randn({3}, torch::requires_grad());
  const Scaling scaling(x, torch::ones({3}));
  const auto run = [&] {
    for (int i = 0; i < 50; ++i) torch::autograd::grad({scaling.y.sum()}, {x}, {}, true);
  };
  std::thread other(run);
  run();
  other.join();
  EXPECT_EQ(scaling.node->calls, 100);  // not atomic: counted under the node's lock
}

}  // namespace
}  // namespace posenc::torch_internals
