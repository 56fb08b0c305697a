#include "posenc/positions/functional/timestep_embedding.h"

#include <gtest/gtest.h>

#include "posenc/positions/nn/timestep_embedding.h"
#include "support/compare.h"
#include "support/devices.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::OnEachDevice;

class Timestep : public OnEachDevice {
 protected:
  functional::TimestepWeights weights() const {
    return {torch::randn({5, 6}).to(device()), torch::randn({5}).to(device()),
            torch::randn({3, 5}).to(device()), torch::randn({3}).to(device())};
  }
};
POSENC_ON_EACH_DEVICE(Timestep);

TEST_P(Timestep, IsTwoLinearMapsOfTheRow) {
  const auto w = weights();
  const auto table = torch::randn({9, 6}).to(device());
  const auto t = torch::tensor({8, 0, 3, 3}).to(device());
  const auto out = functional::timestep_embedding(t, table, w);
  EXPECT_EQ(out.sizes(), (std::vector<int64_t>{4, 3, 1, 1}));
  const auto row =
      torch::relu(table[3].matmul(w.weight0.t()) + w.bias0).matmul(w.weight2.t()) + w.bias2;
  EXPECT_TRUE(testing::within(testing::Op::Linear, out[2].flatten(), row));
  // Equal rows of a matrix product may differ: BLAS may compute the last rows differently.
  EXPECT_TRUE(testing::within(testing::Op::Linear, out[2], out[3]));
  EXPECT_TRUE(testing::within(testing::Op::Linear,
                              functional::timestep_embedding(t.unsqueeze(1), table, w), out));
}

TEST_P(Timestep, IsAddedToEveryPixelOfItsChannel) {
  const auto encoding = torch::randn({4, 3, 1, 1}).to(device());
  const auto image = torch::randn({3, 8, 7}).to(device());
  const auto sum = functional::add_timestep(image, encoding);
  EXPECT_EQ(sum.sizes(), (std::vector<int64_t>{4, 3, 8, 7}));
  EXPECT_TRUE(bit_equal(sum[2][1], image[1] + encoding[2][1]));
  const auto batch = torch::randn({4, 3, 8, 7}).to(device());
  EXPECT_TRUE(bit_equal(functional::add_timestep(batch, encoding), batch + encoding));
}

TEST(TimestepErrors, NameTheRuleAndTheValue) {
  const functional::TimestepWeights w = {torch::randn({5, 6}), torch::randn({5}),
                                         torch::randn({3, 5}), torch::randn({3})};
  const auto table = torch::randn({9, 6});
  const auto encoding = torch::randn({4, 3, 1, 1});
  EXPECT_ERROR(functional::timestep_embedding(torch::tensor({{1, 2}}), table, w), c10::ValueError,
               "t must be (N) or (N, 1). Got [1, 2]");
  EXPECT_ERROR(functional::timestep_embedding(torch::tensor(1), table, w), c10::ValueError,
               "t must be (N) or (N, 1). Got []");
  EXPECT_ERROR(functional::timestep_embedding(torch::tensor({9}), table, w), c10::IndexError,
               "[TimestepEmbedding] every timestep must lie in [0, max_len) = [0, 9). Got 9");
  EXPECT_ERROR(functional::timestep_embedding(torch::tensor({0.5}), table, w), c10::TypeError,
               "timesteps must be integers");
  EXPECT_ERROR(functional::add_timestep(torch::randn({1, 8, 7}), encoding), c10::ValueError,
               "image must have 3 channels. Got [1, 8, 7]");
  EXPECT_ERROR(functional::add_timestep(torch::randn({2, 3, 8, 7}), encoding), c10::ValueError,
               "image must have a batch of 4. Got [2, 3, 8, 7]");
  EXPECT_ERROR(functional::add_timestep(torch::randn({8, 7}), encoding), c10::ValueError,
               "image must be (C, H, W) or (N, C, H, W). Got [8, 7]");
  EXPECT_ERROR(functional::add_timestep(torch::randn({3, 8, 7}), torch::randn({4, 3})),
               c10::ValueError, "encoding must be (N, C, 1, 1). Got [4, 3]");
}

}  // namespace
}  // namespace posenc
