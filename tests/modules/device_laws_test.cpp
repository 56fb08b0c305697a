// Laws for all modules on a device whose memory the host cannot read: the CPU's results and
// gradients, and no forward or backward waits for the device.

#include <gtest/gtest.h>

#include <optional>

#include "modules/module_kinds.h"
#include "posenc/positions/nn/positional_encoding.h"
#include "posenc/positions/nn/token_and_position_embedding.h"
#include "support/test_device/test_device.h"

namespace posenc {
namespace {

using testing::DeviceWaits;
using testing::Kind;
using testing::kModules;
using testing::test_device;

class EachModule : public ::testing::TestWithParam<Kind> {
 protected:
  // The module on the CPU and its copy on the device.
  void SetUp() override {
    module_ = GetParam().make();
    copy_ = module_->clone(test_device());
  }
  torch::Tensor run(torch::nn::Module& module, const torch::Device& device) const {
    const auto ids = torch::tensor({{1, 6, 0}, {3, 3, 2}}).to(device);
    waits_.emplace();
    return GetParam().run(module, ids);
  }
  torch::Tensor on_cpu() const { return run(*module_, torch::kCPU); }
  torch::Tensor on_device() const { return run(*copy_, test_device()); }

  std::shared_ptr<torch::nn::Module> module_, copy_;
  mutable std::optional<DeviceWaits> waits_;
};

INSTANTIATE_TEST_SUITE_P(OnADevice, EachModule, ::testing::ValuesIn(kModules),
                         [](const auto& info) { return info.param.name; });

TEST_P(EachModule, TheForwardWaitsForNothing) {
  module_->eval();
  copy_->eval();
  const auto want = on_cpu(), got = on_device();
  EXPECT_EQ(waits_->count(), 0);
  EXPECT_TRUE(torch::allclose(got.cpu(), want, 1e-5, 1e-6));
}

TEST_P(EachModule, TheBackwardWaitsForNothing) {
  for (auto& child : module_->modules()) child->eval();  // without dropout
  for (auto& child : copy_->modules()) child->eval();
  const auto want = on_cpu(), got = on_device();
  if (!want.requires_grad()) return;
  const auto weights = torch::linspace(-1, 2, want.numel()).view(want.sizes()).to(want.dtype());
  const auto there = weights.to(test_device());
  want.backward(weights);
  waits_.emplace();
  got.backward(there);
  EXPECT_EQ(waits_->count(), 0);
  const auto all = module_->named_parameters(), others = copy_->named_parameters();
  for (const auto& item : all) {
    const auto ours = others[item.key()].grad();
    ASSERT_EQ(ours.defined(), item.value().grad().defined()) << item.key();
    if (!ours.defined()) continue;
    EXPECT_TRUE(torch::allclose(ours.cpu(), item.value().grad(), 1e-4, 1e-5)) << item.key();
  }
}

TEST_P(EachModule, TrainingWaitsForNothing) {
  module_->train();
  copy_->train();
  auto out = on_device();
  if (out.requires_grad()) out.sum().backward();
  EXPECT_EQ(waits_->count(), 0);
}

// Rows that are computed on the CPU are sent without waiting for the device.
TEST(DeviceLaws, RowsWithoutATableAreSentWithoutAWait) {
  for (const auto source : {TableSource::Factored, TableSource::OnTheFly}) {
    PositionalEncoding positions(
        PositionalEncodingOptions(6, 20).dropout(0.0).table_source(source));
    TokenAndPositionEmbedding both(
        TokenAndPositionEmbeddingOptions(9, 6, 20).dropout(0.0).table_source(source));
    const auto x = torch::randn({2, 3, 6});
    const auto ids = torch::tensor({{1, 6, 0}, {3, 3, 2}});
    const auto want_x = positions->forward(x), want = both->forward(ids);
    positions->to(test_device());
    both->to(test_device());
    const auto x_there = x.to(test_device()), ids_there = ids.to(test_device());
    const DeviceWaits waits;
    const auto got_x = positions->forward(x_there), got = both->forward(ids_there);
    EXPECT_EQ(waits.count(), 0);
    EXPECT_TRUE(torch::allclose(got_x.cpu(), want_x) && torch::allclose(got.cpu(), want));
  }
}

}  // namespace
}  // namespace posenc
