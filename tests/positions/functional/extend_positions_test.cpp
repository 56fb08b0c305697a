#include "posenc/positions/functional/extend_positions.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/upsampling.h>
#include <torch/types.h>

#include "posenc/positions/nn/encoder_embeddings.h"
#include "support/compare.h"
#include "weights/files.h"

namespace posenc::extend_positions_test {
namespace {

namespace F = torch::nn::functional;
using functional::extend_positions;
using testing::bit_equal;
using testing::message_of;

TEST(ExtendPositions, RepeatsTheRowsAfterThePrefix) {
  const auto table = torch::randn({6, 3});
  const auto longer = extend_positions(table, 11, PositionExtension::Repeat, 2);
  EXPECT_TRUE(bit_equal(longer, torch::cat({table, table.slice(0, 2), table.slice(0, 2, 3)})));
}

TEST(ExtendPositions, IsTheInterpolationOfTorch) {
  const auto table = torch::randn({5, 4});
  for (const bool align : {false, true}) {
    const auto how = F::InterpolateFuncOptions()
                         .size(std::vector<int64_t>{13})
                         .mode(torch::kLinear)
                         .align_corners(align);
    const auto expected = F::interpolate(table.t().unsqueeze(0), how).squeeze(0).t();
    EXPECT_TRUE(bit_equal(
        extend_positions(table, 13,
                         align ? PositionExtension::LinearAlignCorners : PositionExtension::Linear),
        expected));
  }
}

// Each row as the formula has it, one by one.
TEST(ExtendPositions, IsHierarchical) {
  const auto table = torch::randn({3, 4}, torch::kDouble);
  const auto longer = extend_positions(table, 9, PositionExtension::Hierarchical);
  for (int64_t row = 0; row < 9; ++row) {
    const auto own = [&](int64_t i) { return (table[i] - 0.4 * table[0]) / 0.6; };
    EXPECT_TRUE(torch::allclose(longer[row], 0.4 * own(row / 3) + 0.6 * own(row % 3))) << row;
  }
  EXPECT_TRUE(torch::allclose(longer.slice(0, 0, 3), table)) << "the first rows stay";
}

TEST(ExtendPositions, RefusesWhatIsNoLongerTable) {
  const auto table = torch::randn({4, 2});
  const auto text = [&](int64_t rows, int64_t prefix, PositionExtension rule) {
    return message_of([&] { extend_positions(table, rows, rule, prefix); });
  };
  EXPECT_CONTAINS(text(3, 0, PositionExtension::Repeat),
                  "[extend_positions] rows must be at least 4, those of the table. Got 3");
  EXPECT_CONTAINS(text(8, 4, PositionExtension::Repeat), "prefix must lie in [0, 4). Got 4");
  EXPECT_CONTAINS(text(17, 0, PositionExtension::Hierarchical),
                  "rows must be at most 16 with PositionExtension::Hierarchical. Got 17");
  EXPECT_CONTAINS(message_of([] {
                    extend_positions(torch::ones({2, 2}, torch::kLong), 4,
                                     PositionExtension::Repeat);
                  }),
                  "table must be floating-point");
}

TEST(ExtendPositions, MakesTheTableOfAnEncoderLonger) {
  EncoderEmbeddings embeddings(EncoderEmbeddingsOptions(11, 4)
                                   .position_rows(7)
                                   .padding_idx(1)
                                   .position_padding_idx(1)
                                   .position_ids(embeddings::PositionIds::FromIds));
  const auto before = embeddings->positions->weight.clone();
  embeddings->extend_positions(12, PositionExtension::Repeat);
  EXPECT_EQ(embeddings->max_tokens(), 12);
  EXPECT_TRUE(bit_equal(embeddings->positions->weight,
                        extend_positions(before, 14, PositionExtension::Repeat, 2)));
  const auto ids = torch::randint(2, 11, {2, 12});
  embeddings->forward(ids).sum().backward();
  EXPECT_EQ(embeddings->positions->weight.grad().size(0), 14);
  const auto copy = std::dynamic_pointer_cast<EncoderEmbeddingsImpl>(embeddings->clone());
  EXPECT_EQ(copy->max_tokens(), 12);
  EXPECT_CONTAINS(message_of([&] { embeddings->extend_positions(3, PositionExtension::Repeat); }),
                  "max_tokens must be at least 12, which the table has. Got 3");
}

}  // namespace
}  // namespace posenc::extend_positions_test
