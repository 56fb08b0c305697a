#include "posenc/positions/nn/learned_position_embedding.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/embedding.h>
#include <torch/utils.h>

#include "support/compare.h"
#include "support/seed.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::message_of;
using LearnedOptions = LearnedPositionEmbeddingOptions;

TEST(LearnedPositionEmbedding, IsAnEmbeddingWithAnOffset) {
  torch::manual_seed(testing::seed(0));
  LearnedPositionEmbedding positions(LearnedOptions(8, 4).offset(2).padding_idx(1));
  torch::manual_seed(testing::seed(0));
  torch::nn::Embedding plain(torch::nn::EmbeddingOptions(8, 4).padding_idx(1));
  EXPECT_TRUE(bit_equal(positions->weight, plain->weight));
  const auto ids = torch::tensor({{0, 5}, {3, 3}});
  EXPECT_TRUE(bit_equal(positions->forward(ids), plain->forward(ids + 2)));
  EXPECT_TRUE(bit_equal(positions->forward(ids.to(torch::kUInt8)), plain->forward(ids + 2)));
  EXPECT_EQ(positions->max_positions(), 6);
}

TEST(LearnedPositionEmbedding, RefusesPositionsOutsideTheTable) {
  LearnedPositionEmbedding positions(LearnedOptions(8, 4).offset(2));
  const auto refusal = [&](const torch::Tensor& ids) {
    return message_of([&] { positions->forward(ids); });
  };
  EXPECT_EQ(refusal(torch::tensor({{0, 1}, {6, 0}})),
            "[LearnedPositionEmbedding] every position id must lie in [0, the number of positions) "
            "= [0, 6). Got 6 at index [1, 0]");
  EXPECT_NE(refusal(torch::tensor({-1})).find("Got -1 at index [0]"), std::string::npos);
  EXPECT_EQ(refusal(torch::ones({2})),
            "[LearnedPositionEmbedding] position ids must be integers. Got Float");
}

TEST(LearnedPositionEmbedding, RefusesBadOptions) {
  const auto refusal = [](const LearnedOptions& options) {
    return message_of([&] { LearnedPositionEmbedding positions(options); });
  };
  EXPECT_EQ(refusal(LearnedOptions(0, 4)),
            "[LearnedPositionEmbedding] num_embeddings must be positive. Got 0");
  EXPECT_EQ(refusal(LearnedOptions(4, 0)),
            "[LearnedPositionEmbedding] embedding_dim must be positive. Got 0");
  EXPECT_EQ(refusal(LearnedOptions(4, 4).offset(4)),
            "[LearnedPositionEmbedding] offset must lie in [0, num_embeddings) = [0, 4). Got 4");
  EXPECT_EQ(refusal(LearnedOptions(4, 4).padding_idx(4)),
            "[LearnedPositionEmbedding] padding_idx must lie in [-4, 4). Got 4");
}

TEST(LearnedPositionEmbedding, ResizesAsTheSystemDoes) {
  torch::manual_seed(testing::seed(1));
  LearnedPositionEmbedding positions(10, 4);  // a class token and 3 x 3 patches
  const auto before = positions->weight.detach().clone();
  positions->resize(2, 5, PositionResize::Bicubic, 1);
  EXPECT_EQ(positions->weight.sizes(), (std::vector<int64_t>{11, 4}));
  EXPECT_TRUE(bit_equal(positions->weight,
                        functional::resize_positions(before, 2, 5, PositionResize::Bicubic, 1)));
  EXPECT_TRUE(positions->weight.requires_grad() && positions->weight.is_leaf());
  EXPECT_EQ(positions->parameters()[0].data_ptr(), positions->weight.data_ptr());
  EXPECT_EQ(positions->max_positions(), 11);
  const auto copy = std::dynamic_pointer_cast<LearnedPositionEmbeddingImpl>(positions->clone());
  EXPECT_TRUE(bit_equal(copy->forward(torch::arange(11)), positions->weight));
}

}  // namespace
}  // namespace posenc
