// Versions, by which derived values notice that their source has changed.
#include "core/torch_internals/version.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace posenc::torch_internals {
namespace {

TEST(Version, CountsWritesInPlaceAndThroughViews) {
  const auto x = torch::zeros({4});
  const int64_t before = version_of(x);
  x.add_(1);
  EXPECT_EQ(version_of(x), before + 1);
  x.slice(0, 1, 3).mul_(2);
  EXPECT_EQ(version_of(x), before + 2);
  x.add(1);
  EXPECT_EQ(version_of(x), before + 2);
  EXPECT_EQ(version_of(*x.unsafeGetTensorImpl()), before + 2);
}

TEST(Version, OfAnInferenceTensorIsZero) {
  const c10::InferenceMode inference;
  const auto x = torch::zeros({4});
  x.add_(1);
  EXPECT_EQ(version_of(x), 0);
}

TEST(ReshapedOwner, IsNoView) {
  torch::Tensor owner;
  {
    const torch::NoGradGuard no_grad;
    owner = reshaped_owner(torch::arange(6.0), {2, 3});
  }
  EXPECT_FALSE(owner.is_view());
  EXPECT_EQ(owner[1][0].item<float>(), 3.0F);
  owner.add_(torch::ones({2, 3}, torch::requires_grad()));  // a no-grad view would refuse this
  EXPECT_TRUE(owner.requires_grad());
}

}  // namespace
}  // namespace posenc::torch_internals
