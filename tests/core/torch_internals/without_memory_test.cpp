// The guards, by which modules are made on the meta device.
#include "core/torch_internals/without_memory.h"

#include <gtest/gtest.h>

#include "posenc/transformer/transformer.h"
#include "posenc/weights/state_dict.h"
#include "support/compare.h"

namespace posenc::testing::without_memory_test {
namespace {

using torch_internals::WithMemory;
using torch_internals::WithoutMemory;

// The names and shapes, which are those of a module with memory.
void expect_same_tensors(const StateDict& with, const StateDict& without) {
  ASSERT_EQ(with.keys(), without.keys());
  for (const auto& item : with) {
    const at::Tensor& other = without[item.key()];
    EXPECT_EQ(other.sizes(), item.value().sizes()) << item.key();
    EXPECT_EQ(other.scalar_type(), item.value().scalar_type()) << item.key();
  }
}

TEST(WithoutMemory, AModuleHasItsTensors) {
  const auto options =
      TransformerOptions(11, 9).d_model(8).num_heads(2).num_encoder_layers(1).d_ff(12);
  Transformer without(nullptr);
  {
    const WithoutMemory guard;
    EXPECT_TRUE(WithoutMemory::is_active());
    without = Transformer(options);
  }
  EXPECT_FALSE(WithoutMemory::is_active());
  for (const at::Tensor& parameter : without->parameters()) EXPECT_TRUE(parameter.is_meta());
  expect_same_tensors(state_dict(*Transformer(options)), state_dict(*without));
}

TEST(WithoutMemory, WhatIsMadeAfterwardsHasMemory) {
  { const WithoutMemory guard; }
  EXPECT_EQ(torch::ones({3}).sum().item<float>(), 3.0f);
  const WithoutMemory guard;
  EXPECT_TRUE(torch::ones({3}).is_meta());
  {
    const WithMemory inner;
    EXPECT_FALSE(WithoutMemory::is_active());
    EXPECT_EQ(torch::tensor({1.0f, 2.0f}).sum().item<float>(), 3.0f);
  }
  EXPECT_TRUE(torch::ones({3}).is_meta());
}

TEST(WithoutMemory, ASizeThatNoMachineHas) {
  const WithoutMemory guard;
  const auto layer = torch::nn::Linear(int64_t{1} << 24, int64_t{1} << 24);
  EXPECT_EQ(layer->weight.numel(), int64_t{1} << 48);
}

}  // namespace
}  // namespace posenc::testing::without_memory_test
