// The device for tests itself: what it has to catch, and what LibTorch does on it.

#include "support/test_device/test_device.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "support/compare.h"

namespace posenc::testing {
namespace {

TEST(TestDevice, CatchesAHostThatReadsItsMemory) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto x = torch::ones({3}).to(test_device());
  EXPECT_DEATH(std::cerr << *x.const_data_ptr<float>(), "");
  const auto sum = (x + 1).sum();
  EXPECT_DEATH(*sum.mutable_data_ptr<float>() = 0, "");
}

TEST(TestDevice, CatchesTensorsOfTwoDevicesAndGeneratorsOfAnother) {
  const auto x = torch::ones({3}), there = x.to(test_device());
  EXPECT_NE(message_of([&] { there + x; }).find("same device"), std::string::npos);
  EXPECT_TRUE(bit_equal((there + torch::tensor(2.0f)).cpu(), x + 2));  // as on a GPU
  EXPECT_TRUE(bit_equal(there.index({torch::tensor({0, 2})}).cpu(), torch::ones({2})));
  const auto generator = at::detail::createCPUGenerator();
  EXPECT_NE(message_of([&] { there.clone().uniform_(0, 1, generator); }).find("generator"),
            std::string::npos);
}

TEST(TestDevice, CountsWhatWaits) {
  const auto x = torch::arange(6.0).to(test_device());
  const DeviceWaits waits;
  const auto y = (x * 2).view({2, 3}).t().matmul(x.view({2, 3})).softmax(-1);
  x.clone().copy_(torch::zeros({6}), /*non_blocking=*/true);
  EXPECT_EQ(waits.count(), 0);
  y.sum().item<float>();
  EXPECT_EQ(waits.count(), 1);
  y.cpu();
  EXPECT_EQ(waits.count(), 2);
  torch::zeros({6}).to(test_device());
  EXPECT_EQ(waits.count(), 3);
  y.nonzero();
  y.index({y > 0});
  EXPECT_EQ(waits.count(), 5);
}

TEST(TestDevice, HasStreamsOfItsOwnThatASeedRepeats) {
  torch::manual_seed(7);
  const auto here = torch::rand({50}), there = torch::rand({50}, test_device()).cpu();
  EXPECT_FALSE(bit_equal(here, there));
  torch::manual_seed(7);
  const auto again = torch::rand({50}, test_device()).cpu();
  EXPECT_TRUE(bit_equal(torch::rand({50}), here));  // the CPU's stream is not advanced
  EXPECT_TRUE(bit_equal(again, there));
}

TEST(TestDevice, DifferentiatesConvolutionsAndSparseRows) {
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(2, 4, 3).groups(2).padding(1));
  const auto x = torch::randn({1, 2, 5, 4});
  conv->forward(x).pow(2).sum().backward();
  const auto copy = std::dynamic_pointer_cast<torch::nn::Conv2dImpl>(conv->clone(test_device()));
  copy->forward(x.to(test_device())).pow(2).sum().backward();
  EXPECT_TRUE(within(Op::Gradient, copy->weight.grad().cpu(), conv->weight.grad()));
  EXPECT_TRUE(within(Op::Gradient, copy->bias.grad().cpu(), conv->bias.grad()));

  const auto table = torch::randn({7, 3}).requires_grad_();
  const auto there = table.detach().to(test_device()).requires_grad_();
  const auto ids = torch::tensor({4, 1, 4});
  for (const auto& weight : {table, there}) {
    torch::embedding(weight, ids.to(weight.device()), -1, false, /*sparse=*/true)
        .pow(2)
        .sum()
        .backward();
  }
  EXPECT_TRUE(there.grad().is_sparse());
  EXPECT_TRUE(bit_equal(there.grad().coalesce().to_dense().cpu(), table.grad().to_dense()));
}

TEST(TestDevice, KeepsValuesWhenItsMemoryGrows) {
  const auto x = torch::arange(4.0).to(test_device());
  x.resize_({2000});
  EXPECT_TRUE(bit_equal(x.slice(0, 0, 4).cpu(), torch::arange(4.0)));
}

}  // namespace
}  // namespace posenc::testing
