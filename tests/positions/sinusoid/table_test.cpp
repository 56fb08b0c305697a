#include "posenc/positions/sinusoid/table.h"

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <limits>

#include "posenc/positions/sinusoid/preset.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/presets.h"
#include "support/threads.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::OnEachDevice;

class Table : public OnEachDevice {};
POSENC_ON_EACH_DEVICE(Table);

TEST_P(Table, GoesToTheDeviceAndTypeAskedFor) {
  const auto reference = sinusoid_table(SinusoidOptions(36), 50);
  for (const auto dtype : {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf}) {
    const auto there =
        sinusoid_table(SinusoidOptions(36), 50, torch::TensorOptions(dtype).device(device()));
    EXPECT_EQ(there.device(), device());
    EXPECT_TRUE(bit_equal(there, reference.to(dtype)));
  }
}

TEST(SinusoidTable, RowsAreThoseOfTheirPositions) {
  for (const std::string& name : testing::plain_presets()) {
    SCOPED_TRACE(name);
    const auto options = preset(name, 36);
    const auto table = sinusoid_table(options, 600);
    const auto positions = torch::tensor({{5, 0, 599}, {7, 7, 1}});
    const auto rows = sinusoid_rows(options, positions);
    EXPECT_EQ(rows.sizes(), (std::vector<int64_t>{2, 3, 36}));
    EXPECT_TRUE(bit_equal(rows, table.index({positions})));
  }
}

// A thread of the pool does not inherit its caller's InferenceMode.
TEST(SinusoidTable, IsTheSameInInferenceMode) {
  const testing::Threads threads(2);
  for (const std::string& name : testing::plain_presets()) {
    SCOPED_TRACE(name);
    const auto options = preset(name, 64);
    const auto expected = sinusoid_table(options, 3000);
    const c10::InferenceMode guard;
    EXPECT_TRUE(bit_equal(sinusoid_table(options, 3000), expected));
  }
}

// With powers computed over the grid, the last bits of a row depend on the others.
TEST(SinusoidTable, PowersOverTheGridDependOnTheLength) {
  const auto options = preset("notebook_002", 38);
  const auto table = sinusoid_table(options, 600);
  EXPECT_TRUE(table.allclose(sinusoid_table(preset("notebook_001", 38), 600), 0, 1e-3));
  EXPECT_TRUE(bit_equal(sinusoid_rows(options, torch::arange(600)), table));
}

TEST(Sinusoid, HasNoSingleRowsWhereTheyDependOnTheTable) {
  const auto some = torch::arange(3);
  for (const auto& options :
       {preset("mae_2d", 16, {{"height", 3}}), preset("tape", 16), preset("patchtst_sincos", 16)}) {
    EXPECT_ERROR(sinusoid_rows(options, some), c10::ValueError, "does not depend on the table");
  }
}

TEST(Sinusoid, TakesRealNegativeAndNoPositions) {
  const auto options = SinusoidOptions(18);
  const auto half = sinusoid_rows(options, torch::tensor({0.5, 1.0}));
  EXPECT_TRUE(bit_equal(half[1], sinusoid_table(options, 2)[1]));
  EXPECT_FLOAT_EQ(half[0][0].item<float>(), std::sin(0.5f));
  const auto back = sinusoid_rows(options, torch::tensor({-3, 3}));
  EXPECT_TRUE(bit_equal(back[0].slice(0, 1, 18, 2), back[1].slice(0, 1, 18, 2)));   // cos is even
  EXPECT_TRUE(bit_equal(back[0].slice(0, 0, 18, 2), -back[1].slice(0, 0, 18, 2)));  // sin is odd
  EXPECT_EQ(sinusoid_rows(options, torch::empty({0, 4}, torch::kLong)).sizes(),
            (std::vector<int64_t>{0, 4, 18}));
  EXPECT_EQ(sinusoid_rows(options, torch::tensor(7)).sizes(), (std::vector<int64_t>{18}));
}

TEST(SinusoidTable, HalvesHoldTheSameNumbers) {
  const auto interleaved = sinusoid_table(SinusoidOptions(18), 40);
  const auto halves = sinusoid_table(SinusoidOptions(18).layout(sinusoid::Layout::Halves), 40);
  EXPECT_TRUE(bit_equal(halves.slice(1, 0, 9), interleaved.slice(1, 0, 18, 2)));
  EXPECT_TRUE(bit_equal(halves.slice(1, 9), interleaved.slice(1, 1, 18, 2)));
}

TEST(SinusoidTable, OddDimensionsFollowTheirRule) {
  const auto extra = sinusoid_table(SinusoidOptions(7).odd_dim(sinusoid::OddDim::ExtraSin), 9);
  EXPECT_TRUE(extra[0].equal(torch::tensor({0.f, 1.f, 0.f, 1.f, 0.f, 1.f, 0.f})));
  EXPECT_GT(extra[8][6].item<float>(), 0.0f);
  const auto zero = sinusoid_table(SinusoidOptions(7).odd_dim(sinusoid::OddDim::ZeroColumn), 9);
  EXPECT_TRUE(zero.select(1, 6).eq(0).all().item<bool>());
  EXPECT_TRUE(bit_equal(zero.slice(1, 0, 6), sinusoid_table(SinusoidOptions(6), 9)));
  const auto halves = sinusoid_table(
      SinusoidOptions(7).odd_dim(sinusoid::OddDim::ExtraSin).layout(sinusoid::Layout::Halves), 9);
  EXPECT_TRUE(bit_equal(halves.slice(1, 0, 4), extra.slice(1, 0, 7, 2)));
  EXPECT_TRUE(bit_equal(halves.slice(1, 4), extra.slice(1, 1, 7, 2)));
}

TEST(SinusoidTable, Float64ArithmeticIsNearerTheFormula) {
  const auto options = SinusoidOptions(96);
  const auto exact = sinusoid_table(SinusoidOptions(96).arithmetic(sinusoid::Arithmetic::Float64),
                                    5000, torch::TensorOptions(torch::kDouble));
  EXPECT_EQ(exact.scalar_type(), torch::kDouble);
  EXPECT_NEAR(exact[4999][2].item<double>(), std::sin(4999 * std::pow(10000.0, -2.0 / 96)), 1e-11);
  EXPECT_TRUE(testing::within(testing::Op::ForeignTable, sinusoid_table(options, 5000),
                              exact.to(torch::kFloat)));
}

TEST(SinusoidTable, RejectsBadLengthsAndPositions) {
  const auto options = SinusoidOptions(8);
  EXPECT_ERROR(sinusoid_table(options, 0), c10::ValueError, "length must lie in [1, 2^31]. Got 0");
  EXPECT_ERROR(sinusoid_table(options, -1), c10::ValueError,
               "length must lie in [1, 2^31]. Got -1");
  EXPECT_ERROR(sinusoid_table(SinusoidOptions(7), 4), c10::ValueError, "dim must be even");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_ERROR(sinusoid_rows(options, torch::tensor({0.f, nan})), c10::ValueError,
               "must be finite");
  EXPECT_ERROR(sinusoid_rows(options, torch::tensor({true})), c10::TypeError, "integers or reals");
}

TEST_P(Table, ConvertRebuildsWhatTheRecipeMadeAndCastsTheRest) {
  const auto options = SinusoidOptions(36);
  const auto table = sinusoid_table(options, 50, torch::TensorOptions(device()));
  const auto there_and_back =
      convert_table(options, convert_table(options, table, torch::kBFloat16), torch::kFloat);
  EXPECT_TRUE(bit_equal(there_and_back, table));
  const auto trained = table + 0.25;
  EXPECT_TRUE(bit_equal(convert_table(options, trained, torch::kHalf), trained.to(torch::kHalf)));
  const auto batched = convert_table(options, table.unsqueeze(0), torch::kDouble);
  EXPECT_TRUE(bit_equal(batched[0], table.to(torch::kDouble)));
}

}  // namespace
}  // namespace posenc
