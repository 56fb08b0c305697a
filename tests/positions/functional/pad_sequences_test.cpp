#include "posenc/positions/functional/pad_sequences.h"

#include <gtest/gtest.h>

#include "support/compare.h"
#include "support/devices.h"

namespace posenc::functional {
namespace {

using posenc::testing::OnEachDevice;

class PadSequences : public OnEachDevice {
 protected:
  std::vector<torch::Tensor> sequences() const {
    return {torch::tensor({1, 5}).to(device()), torch::tensor({1, 1, 7, 2}).to(device())};
  }
};
POSENC_ON_EACH_DEVICE(PadSequences);

TEST_P(PadSequences, FillsUpToMaxLen) {  // the batch of notebook 02
  const auto batch = pad_sequences(sequences(), PadSequencesOptions().max_len(5));
  EXPECT_EQ(batch.ids.device(), device());
  EXPECT_TRUE(batch.ids.cpu().equal(torch::tensor({{1, 5, 0, 0, 0}, {1, 1, 7, 2, 0}})));
  EXPECT_TRUE(batch.lengths.cpu().equal(torch::tensor({2, 4})));
  EXPECT_TRUE(batch.mask.sum(1).equal(batch.lengths));
  EXPECT_TRUE(batch.mask.cpu()[0].equal(torch::tensor({true, true, false, false, false})));
}

TEST_P(PadSequences, TakesTheLongestAndAnyPadId) {
  const auto batch = pad_sequences(sequences(), PadSequencesOptions().pad_id(-100));
  EXPECT_TRUE(batch.ids.cpu().equal(torch::tensor({{1, 5, -100, -100}, {1, 1, 7, 2}})));
}

TEST_P(PadSequences, KeepsTheTypeAndTakesEmptySequences) {
  const auto batch = pad_sequences(
      {torch::empty({0}, torch::kInt).to(device()), torch::ones({2}, torch::kInt).to(device())});
  EXPECT_EQ(batch.ids.scalar_type(), torch::kInt);
  EXPECT_EQ(batch.lengths[0].item<int64_t>(), 0);
  EXPECT_FALSE(batch.mask[0].any().item<bool>());
}

TEST_P(PadSequences, LengthMaskAlone) {
  const auto lengths = torch::tensor({2, 0, 3}, torch::kInt).to(device());
  const auto mask = length_mask(lengths);
  EXPECT_EQ(mask.sizes(), (std::vector<int64_t>{3, 3}));
  EXPECT_TRUE(mask.sum(1).cpu().equal(torch::tensor({2, 0, 3})));
  EXPECT_EQ(length_mask(lengths, 7).size(1), 7);
}

TEST(PadSequencesErrors, NameTheRuleAndTheValue) {
  const auto a = torch::tensor({1, 2, 3});
  EXPECT_ERROR(pad_sequences({}), c10::ValueError, "at least one sequence is required. Got 0");
  EXPECT_ERROR(pad_sequences({a.unsqueeze(0)}), c10::ValueError,
               "every sequence must be (L). Got [1, 3] for sequence 0");
  EXPECT_ERROR(pad_sequences({a, a}, PadSequencesOptions().max_len(2)), c10::ValueError,
               "sequence 0 must not be longer than max_len 2. Got 3");
  EXPECT_ERROR(pad_sequences({a}, PadSequencesOptions().max_len(-1)), c10::ValueError,
               "max_len must not be negative. Got -1");
  EXPECT_ERROR(pad_sequences({a.to(torch::kFloat)}), c10::TypeError,
               "sequences must hold integers. Got Float");
  EXPECT_ERROR(pad_sequences({a, a.to(torch::kInt)}), c10::TypeError,
               "all sequences must have one type, Long. Got Int for sequence 1");
  EXPECT_ERROR(pad_sequences({a, a.to(torch::kMeta)}), c10::ValueError,
               "all sequences must be on one device, cpu. Got meta for sequence 1");
  EXPECT_ERROR(length_mask(a.unsqueeze(0)), c10::ValueError, "lengths must be (B). Got [1, 3]");
  EXPECT_ERROR(length_mask(a.to(torch::kFloat)), c10::TypeError, "lengths must be integers");
  EXPECT_ERROR(length_mask(a, -2), c10::ValueError, "max_len must not be negative. Got -2");
}

}  // namespace
}  // namespace posenc::functional
