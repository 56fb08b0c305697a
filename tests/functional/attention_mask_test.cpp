#include "posenc/functional/attention_mask.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>

#include "support/compare.h"
#include "support/devices.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::OnEachDevice;

constexpr float kNo = -std::numeric_limits<float>::infinity();
const AttentionShape kShape = {2, 3, 4, 5};  // B, H, L, S

torch::Tensor bias_of(const AttentionMask& mask, const torch::Tensor& like = torch::zeros({1})) {
  return mask.resolve(kShape, like).bias.expand({2, 3, 4, 5});
}

// The bias of what `may` (broadcastable, true = may attend) allows.
torch::Tensor expected(const torch::Tensor& may) {
  return torch::zeros({2, 3, 4, 5}).masked_fill(may.logical_not(), kNo);
}

torch::Tensor bits(std::vector<int64_t> shape) { return torch::rand(shape) < 0.5; }

TEST(AttentionMask, NoneIsNoMask) {
  EXPECT_TRUE(AttentionMask().is_none());
  EXPECT_FALSE(AttentionMask().resolve(kShape, torch::zeros({1})).bias.defined());
  EXPECT_FALSE(AttentionMask().resolve(kShape, torch::zeros({1})).is_causal);
  EXPECT_TRUE((AttentionMask() & AttentionMask()).is_none());
  EXPECT_FALSE(AttentionMask::causal().is_none());
}

TEST(AttentionMask, SaysWhatTrueMeans) {
  const auto may = bits({4, 5});
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::keep(may)), expected(may)));
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::masked(may)), expected(may.logical_not())));
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::from_torch_nn(may)), expected(may.logical_not())));
  const auto bias = torch::randn({4, 5});
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::additive(bias)), bias.expand({2, 3, 4, 5})));
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::from_torch_nn(bias)), bias.expand({2, 3, 4, 5})));
}

TEST(AttentionMask, TakesEveryBroadcastableShape) {
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {}, {5}, {1, 5}, {4, 1}, {4, 5}, {2, 1, 1, 5}, {1, 3, 4, 1}, {2, 3, 4, 5}}) {
    const auto may = bits(shape);
    EXPECT_TRUE(bit_equal(bias_of(AttentionMask::keep(may)), expected(may)));
  }
}

// Three axes begin with the batch, not with the heads as broadcasting from the right would have it.
TEST(AttentionMask, ReadsThreeAxesAsBatchesOrTorchNnsHeads) {
  const auto batches = bits({2, 4, 5}), all = bits({6, 4, 5});
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::keep(batches)), expected(batches.unsqueeze(1))));
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::keep(all)), expected(all.view({2, 3, 4, 5}))));
}

TEST(AttentionMask, CausalCountsTheKeysBeforeTheFirstQuery) {
  for (const int64_t offset : {-2, 0, 1, 3, 4, 9}) {
    const auto may = torch::ones({4, 5}, torch::kBool).tril(offset);
    const auto resolved = AttentionMask::causal(offset).resolve(kShape, torch::zeros({1}));
    EXPECT_EQ(resolved.is_causal, offset == 0);
    EXPECT_EQ(resolved.bias.defined(), offset < 4 && offset != 0) << "all keys are seen from 4 on";
    const auto everything = AttentionMask::keep(torch::ones({1}, torch::kBool));
    EXPECT_TRUE(bit_equal(bias_of(AttentionMask::causal(offset) & everything), expected(may)));
  }
}

TEST(AttentionMask, CombinesWhatBothAllow) {
  const auto ids = torch::tensor({{7, 0, 3, 0, 0}, {1, 2, 3, 4, 0}});
  const auto may = bits({4, 5});
  const auto first = torch::randn({4, 5}), second = torch::randn({2, 3, 1, 5});
  const auto mask = AttentionMask::causal() & AttentionMask::padding(ids, 0) &
                    AttentionMask::keep(may) & AttentionMask::additive(first) &
                    AttentionMask::additive(second) & AttentionMask::causal(2);
  const auto allowed =
      torch::ones({4, 5}, torch::kBool).tril() & (ids != 0).view({2, 1, 1, 5}) & may;
  EXPECT_TRUE(bit_equal(bias_of(mask), (first + second).masked_fill(allowed.logical_not(), kNo)));
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::masked_keys(ids == 0)),
                        bias_of(AttentionMask::padding(ids.to(torch::kInt), 0))));
}

TEST(AttentionMask, IsResolvedOnce) {
  const auto like = torch::zeros({1}, torch::kBFloat16);
  const auto mask = AttentionMask::causal() & AttentionMask::keep(bits({4, 5}));
  const auto once = mask.resolved(kShape, like);
  const auto bias = once.resolve(kShape, like).bias;
  EXPECT_EQ(bias.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(bias.is_same(once.resolve(kShape, like).bias)) << "nothing is computed again";
  EXPECT_TRUE(bit_equal(bias, mask.resolve(kShape, like).bias));
  EXPECT_TRUE(AttentionMask::causal().resolved(kShape, like).resolve(kShape, like).is_causal);
  EXPECT_TRUE(AttentionMask().resolved(kShape, like).is_none());
}

class AttentionMaskOnDevices : public OnEachDevice {};
POSENC_ON_EACH_DEVICE(AttentionMaskOnDevices);

TEST_P(AttentionMaskOnDevices, IsMadeWhereTheInputIs) {
  const auto like = torch::zeros({1}).to(device());
  const auto mask = AttentionMask::causal(1) &
                    AttentionMask::padding(torch::ones({2, 5}, torch::kLong).to(device()), 0);
  EXPECT_EQ(mask.resolve(kShape, like).bias.device(), device());
}

TEST(AttentionMaskErrors, RejectsOtherTypes) {
  for (const auto& wrong : {torch::ones({4, 5}), torch::ones({4, 5}, torch::kByte)}) {
    EXPECT_ERROR(AttentionMask::keep(wrong), c10::TypeError, "keep() takes a bool tensor");
    EXPECT_ERROR(AttentionMask::masked(wrong), c10::TypeError, "masked() takes a bool tensor");
    EXPECT_ERROR(AttentionMask::masked_keys(wrong), c10::TypeError, "masked_keys() takes a bool");
  }
  EXPECT_ERROR(AttentionMask::additive(bits({4, 5})), c10::TypeError, "takes real numbers");
  EXPECT_ERROR(AttentionMask::from_torch_nn(torch::ones({4, 5}, torch::kByte)), c10::TypeError,
               "takes real numbers");
  EXPECT_ERROR(AttentionMask::padding(torch::ones({4, 5}), 0), c10::TypeError, "takes ids");
  EXPECT_ERROR(AttentionMask::keep(torch::Tensor()), c10::TypeError, "undefined");
}

TEST(AttentionMaskErrors, RejectsOtherShapes) {
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {4}, {5, 4}, {2, 5}, {3, 4, 5}, {4, 4, 5}, {2, 4, 4, 5}, {1, 2, 3, 4, 5}}) {
    EXPECT_ERROR(bias_of(AttentionMask::keep(bits(shape))), c10::ValueError,
                 "must broadcast to the scores");
    EXPECT_ERROR(bias_of(AttentionMask::additive(torch::zeros(shape))), c10::ValueError,
                 "(B, H, L, S) = [2, 3, 4, 5]");
  }
  EXPECT_ERROR(AttentionMask::masked_keys(bits({5})), c10::ValueError, "take (B, S)");
}

TEST(AttentionMaskErrors, RejectsAnotherDevice) {
  const auto elsewhere = torch::zeros({1}, torch::kMeta);
  EXPECT_ERROR(AttentionMask::keep(bits({4, 5})).resolve(kShape, elsewhere), c10::ValueError,
               "must be on the device meta");
}

}  // namespace
}  // namespace posenc
