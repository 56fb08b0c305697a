// Modules that embed tokens, with Precision::Exact and half types: each sum is rounded once.

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "posenc/positions/nn/input_embedding.h"
#include "posenc/positions/sinusoid/table.h"
#include "support/compare.h"

namespace posenc {
namespace {

using testing::bit_equal;

// Half types with Precision::Exact: rounded once, from float32 rows; a table from elsewhere is used
// as it is.
TEST(CompositeExact, HalfTypesAreSummedInFloat32) {
  using PositionSource = posenc::TableSource;
  for (const auto source :
       {PositionSource::Buffer, PositionSource::Factored, PositionSource::OnTheFly}) {
    const auto exact = SinusoidOptions(64).precision(Precision::Exact);
    const double scale = 1.3;
    InputEmbedding module(
        InputEmbeddingOptions(40, 64, 32).table_source(source).sinusoid(exact).scale(scale));
    module->to(torch::kBFloat16);
    const torch::NoGradGuard guard;
    const auto ids = torch::randint(0, 40, {3, 32}, torch::kLong);
    const auto& weight = module->token_embedding->embedding->weight;
    const auto rows = sinusoid_table(exact, 32);
    const auto once =
        (weight.to(torch::kFloat).index_select(0, ids.flatten()).view({3, 32, 64}) * scale + rows)
            .to(torch::kBFloat16);
    EXPECT_TRUE(bit_equal(module->forward(ids), once));
    if (source != PositionSource::Buffer) continue;
    module->pos_encoding->pe.mul_(1.5);  // like values from a checkpoint
    const auto tokens = weight.index_select(0, ids.flatten()).view({3, 32, 64});
    EXPECT_TRUE(bit_equal(module->forward(ids), tokens * scale + module->pos_encoding->pe));
  }
}

TEST(CompositeExact, RowsWithoutATableFollowEveryConversion) {
  const auto exact = SinusoidOptions(64).precision(Precision::Exact);
  for (const auto source : {posenc::TableSource::Factored, posenc::TableSource::OnTheFly}) {
    InputEmbedding module(InputEmbeddingOptions(40, 64, 32).table_source(source).sinusoid(exact));
    const torch::NoGradGuard no_grad;
    module->token_embedding->embedding->weight.zero_();
    for (const auto dtype : {torch::kBFloat16, torch::kDouble, torch::kHalf, torch::kFloat}) {
      module->to(dtype);
      EXPECT_TRUE(bit_equal(module->forward(torch::zeros({32}, torch::kLong)),
                            sinusoid_table(exact, 32, dtype)))
          << dtype;
    }
  }
}

// Among the millions of elements of a table of the default length, some are halfway between two
// half-precision numbers once they are rounded to float32.
TEST(CompositeExact, HalfTypesAreSummedInFloat32AtTheDefaultLengthAndAfterGrowth) {
  const auto exact = SinusoidOptions(512).precision(Precision::Exact);
  const torch::NoGradGuard guard;
  const auto ids = torch::randint(0, 40, {600}, torch::kLong);
  const auto rows = sinusoid_table(exact, 600);
  for (const auto dtype : {torch::kHalf, torch::kBFloat16}) {
    for (const int64_t max_len : {int64_t{5000}, int64_t{16}}) {
      InputEmbedding module(
          InputEmbeddingOptions(40, 512, max_len).sinusoid(exact).grow(true).scale(2.0));
      module->to(dtype);
      const auto& weight = module->token_embedding->embedding->weight;
      const auto once = (weight.to(torch::kFloat).index_select(0, ids) * 2.0 + rows).to(dtype);
      EXPECT_TRUE(bit_equal(module->forward(ids.slice(0, 0, 8)), once.slice(0, 0, 8)));
      EXPECT_TRUE(bit_equal(module->forward(ids), once)) << dtype << " " << max_len;
      auto& pe = module->pos_encoding->pe;  // as a file may hold it: rounded from float32
      pe.copy_(sinusoid_table(exact, pe.size(1)).to(dtype));
      EXPECT_TRUE(bit_equal(module->forward(ids), once)) << dtype << " " << max_len;
    }
  }
}

TEST(CompositeExact, ATableThatIsWrittenInInferenceModeIsUsed) {
  const c10::InferenceMode inference;
  const auto exact = SinusoidOptions(64).precision(Precision::Exact);
  InputEmbedding module(InputEmbeddingOptions(40, 64, 32).sinusoid(exact));
  module->to(torch::kHalf);
  const auto ids = torch::randint(0, 40, {32}, torch::kLong);
  const auto before = module->forward(ids);
  EXPECT_TRUE(bit_equal(module->forward(ids), before));
  auto& pe = module->pos_encoding->pe;
  pe.copy_(pe * 1.5);
  const auto tokens = module->token_embedding->embedding->weight.index_select(0, ids);
  EXPECT_TRUE(bit_equal(module->forward(ids), tokens + pe[0]));
  pe.copy_(sinusoid_table(exact, 32, torch::kHalf));
  EXPECT_TRUE(bit_equal(module->forward(ids), before));
}

TEST(CompositeExact, ATableThatIsTrainedIsAddedAndGetsItsGradient) {
  const auto exact = SinusoidOptions(64).precision(Precision::Exact);
  InputEmbedding module(InputEmbeddingOptions(40, 64, 32).sinusoid(exact));
  module->to(torch::kHalf);
  auto& pe = module->pos_encoding->pe;
  pe.set_requires_grad(true);
  module->forward(torch::randint(0, 40, {2, 8}, torch::kLong)).sum().backward();
  ASSERT_TRUE(pe.grad().defined());
  EXPECT_EQ(pe.grad().sum().item<double>(), 2 * 8 * 64);
}

}  // namespace
}  // namespace posenc
