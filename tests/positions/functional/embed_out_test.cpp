// embed_out() writes through a pointer: autograd must notice, and the errors are ATen's.

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>

#include "posenc/positions/functional/embed.h"
#include "support/compare.h"

namespace posenc::functional {
namespace {

using posenc::testing::bit_equal;

struct EmbedOut : ::testing::Test {
  torch::Tensor weight = torch::randn({9, 6}), table = torch::randn({7, 6});
  torch::Tensor ids = torch::randint(0, 9, {2, 5}, torch::kLong);
  torch::Tensor out = torch::zeros({2, 5, 6});
};

TEST_F(EmbedOut, BackwardNoticesThatWhatItSavedWasOverwritten) {
  const auto strided = torch::zeros({5, 2, 6}).transpose(0, 1);
  for (const auto& buffer : {out, strided}) {
    const auto factors = torch::randn({6}).requires_grad_();
    embed_out(buffer, ids, weight, table);
    const auto version = buffer._version();
    const auto y = buffer * factors;
    embed_out(buffer, ids.flip(1), weight, table);
    EXPECT_GT(buffer._version(), version);
    EXPECT_ERROR(y.sum().backward(), c10::Error, "modified by an inplace operation");
  }
}

TEST_F(EmbedOut, RejectsAnInferenceTensorOutsideInferenceMode) {
  const auto make = [&] {
    const c10::InferenceMode guard;
    return torch::zeros({2, 5, 6});
  };
  const auto inference = make();
  const auto how = EmbedFuncOptions().dropout(0.5).training(true);
  const auto state = at::detail::getDefaultCPUGenerator().get_state();
  EXPECT_ERROR(embed_out(inference, ids, weight, table, how), c10::ValueError,
               "[embed] out must not be an inference tensor outside InferenceMode");
  EXPECT_TRUE(inference.eq(0).all().item<bool>());
  EXPECT_TRUE(bit_equal(at::detail::getDefaultCPUGenerator().get_state(), state));
  const auto expected = embed(ids, weight, table);
  const c10::InferenceMode guard;
  EXPECT_TRUE(bit_equal(embed_out(inference, ids, weight, table), expected));
  EXPECT_TRUE(bit_equal(embed_out(out, ids, weight, table), expected));  // a normal tensor
}

// Like ATen's functions with out=, an unrecorded write to a leaf is an error.
TEST_F(EmbedOut, WritesToALeafOnlyUnrecorded) {
  out.requires_grad_();
  EXPECT_ERROR(embed_out(out, ids, weight, table), c10::ValueError, "NoGradGuard");
  const torch::NoGradGuard guard;
  EXPECT_TRUE(bit_equal(embed_out(out, ids, weight, table), embed(ids, weight, table)));
}

// Its bytes are not its values.
TEST_F(EmbedOut, OfALazyNegation) {
  const auto negated = out._neg_view();
  EXPECT_TRUE(torch::equal(embed_out(negated, ids, weight, table), embed(ids, weight, table)));
}

TEST_F(EmbedOut, NeedsATable) {
  EXPECT_ERROR(embed_out(out, ids, weight, {}), c10::ValueError, "there must be a table");
  EXPECT_ERROR(embed(ids, weight, {}), c10::ValueError, "there must be a table");
  EXPECT_EQ(out._version(), 0);
}

TEST_F(EmbedOut, MayNotShareMemoryWithPositions) {
  const auto memory = torch::zeros({64}, torch::kLong);
  const auto inside = memory.view(torch::kFloat).slice(0, 4, 64).view({2, 5, 6});
  const auto positions = memory.slice(0, 4, 14).view({2, 5});
  EmbedFuncOptions how;
  how.position().position_ids(positions);
  EXPECT_ERROR(embed_out(inside, ids, weight, table, how), c10::ValueError,
               "share memory with position_ids");
  how.position().position_ids(memory.slice(0, 40, 50).view({2, 5}));
  EXPECT_TRUE(
      bit_equal(embed_out(inside, ids, weight, table, how), embed(ids, weight, table, how)));
}

}  // namespace
}  // namespace posenc::functional
