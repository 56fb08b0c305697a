// Precision::Exact and FactoredTable as tensors; exact/ has the kernels' own tests.

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posenc/positions/sinusoid/factored_table.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "support/compare.h"

namespace posenc {
namespace {

using testing::bit_equal;

SinusoidOptions exact(const SinusoidOptions& options) {
  return SinusoidOptions(options).precision(Precision::Exact);
}

PresetParams shape_of(const Preset& entry) {
  PresetParams params;
  for (const PresetParam& param : entry.params) {
    if (param.fallback.empty()) params.emplace(param.name, 3);
  }
  return params;
}

// Wherever it is defined, the exact table equals the reference table up to the recipe's roundings.
TEST(Exact, IsNearEveryReferenceTable) {
  int64_t compared = 0;
  for (const Preset& entry : presets()) {
    const int64_t dim = entry.name == "nerf" ? 63 : entry.name == "perceiver_fourier" ? 129 : 48;
    const auto options = preset(entry.name, dim, shape_of(entry));
    const int64_t length = options.grid().empty() ? 60 : options.grid().size() == 2 ? 9 : 27;
    torch::Tensor table;
    try {
      table = sinusoid_table(exact(options), length);
    } catch (const c10::ValueError& error) {
      EXPECT_PRED_FORMAT2(::testing::IsSubstring, "Precision::Exact is not defined",
                          error.what_without_backtrace());
      continue;
    }
    SCOPED_TRACE(entry.name);
    const auto reference = sinusoid_table(options, length);
    ASSERT_EQ(table.sizes(), reference.sizes());
    // NeRF's last frequency is 2^9, which scales the angle and its rounding.
    const double bound = 60 * 3.0 / (1 << 24) * (entry.name == "nerf" ? 512 : 1) + 1.2e-7;
    EXPECT_LE((table - reference).abs().max().item<double>(), bound);
    ++compared;
  }
  EXPECT_GE(compared, 85);
}

// Every index with every frequency whose formula is exact; presets cover only some combinations.
TEST(Exact, IsNearTheReferenceForEveryIndexAndFrequency) {
  int64_t compared = 0;
  for (const sinusoid::Index index :
       {sinusoid::Index::Even, sinusoid::Index::Half, sinusoid::Index::Paired,
        sinusoid::Index::PairNumber, sinusoid::Index::Doubled, sinusoid::Index::PairedHalf}) {
    for (const sinusoid::Frequency frequency :
         {sinusoid::Frequency::Exp, sinusoid::Frequency::ExpOfFloatLog,
          sinusoid::Frequency::ExpDividedLast, sinusoid::Frequency::Power,
          sinusoid::Frequency::PowerReciprocal, sinusoid::Frequency::PowerNegative,
          sinusoid::Frequency::PowerOfProduct, sinusoid::Frequency::PowerInverseBase}) {
      const bool rises = frequency == sinusoid::Frequency::Power ||
                         frequency == sinusoid::Frequency::PowerOfProduct;
      const auto options = SinusoidOptions(48)
                               .index(index)
                               .frequency(frequency)
                               .phase(rises ? sinusoid::Phase::Quotient : sinusoid::Phase::Product)
                               .arithmetic(sinusoid::Arithmetic::Float64);
      torch::Tensor table, reference;
      try {
        reference = sinusoid_table(options, 60);
        table = sinusoid_table(exact(options), 60);
      } catch (const c10::ValueError&) {
        continue;  // an index that these frequencies do not support
      }
      SCOPED_TRACE(::testing::Message() << "index " << static_cast<int>(index) << ", frequency "
                                        << static_cast<int>(frequency));
      EXPECT_LE((table - reference).abs().max().item<double>(), 60 * 3.0 / (1 << 24) + 1.2e-7);
      ++compared;
    }
  }
  EXPECT_GE(compared, 40);
}

TEST(Exact, RoundsOnceIntoEachType) {
  const auto options = exact(SinusoidOptions(34));
  const auto wide = sinusoid_table(options, 500, torch::TensorOptions(torch::kDouble));
  const auto as_float = sinusoid_table(options, 500, torch::TensorOptions(torch::kFloat));
  EXPECT_TRUE(bit_equal(as_float, wide.to(torch::kFloat)));
  // On x86-64 ATen converts float64 to a half type via float32, which rounds twice. Ours is never
  // farther from the formula, and is nearer where double rounding went wrong.
  const auto above_a_tie = torch::full({}, 1.0 + 0x1p-11 + 0x1p-40, torch::kDouble);
  const bool rounds_twice = above_a_tie.to(torch::kHalf).item<double>() == 1.0;
  for (const auto dtype : {torch::kBFloat16, torch::kHalf}) {
    const auto table = sinusoid_table(options, 500, torch::TensorOptions(dtype));
    const auto ours = (table.to(torch::kDouble) - wide).abs();
    const auto twice = (wide.to(dtype).to(torch::kDouble) - wide).abs();
    EXPECT_TRUE((ours <= twice).all().item<bool>());
    EXPECT_TRUE(!rounds_twice || (ours < twice).any().item<bool>());
    EXPECT_LT(table.ne(wide.to(dtype)).sum().item<int64_t>(), 10);
  }
  EXPECT_NEAR(wide[499][2].item<double>(), std::sin(499 * std::pow(10000.0, -2.0 / 34)), 1e-12);
}

TEST(Exact, RowsAreThoseOfTheirPositionsAtAnyNumberOfThreads) {
  const auto options = exact(SinusoidOptions(70));
  const int before = at::get_num_threads();
  const auto table = sinusoid_table(options, 3000);
  const auto positions = torch::tensor({{5, 2999}, {0, 17}});
  for (const int threads : {1, 2, 4}) {
    at::set_num_threads(threads);
    EXPECT_TRUE(bit_equal(sinusoid_table(options, 3000), table));
    EXPECT_TRUE(bit_equal(sinusoid_rows(options, positions), table.index({positions})));
  }
  at::set_num_threads(before);
  EXPECT_TRUE(bit_equal(sinusoid_rows(options, torch::tensor({17.0})), table[17].unsqueeze(0)));
}

TEST(Exact, FarPositionsAreOnTheCircle) {
  const auto far = torch::tensor({int64_t{2147483647}, int64_t{-2147483647}, int64_t{1999999999}});
  const auto rows = sinusoid_rows(exact(SinusoidOptions(512)), far).to(torch::kDouble);
  const auto s = rows.slice(1, 0, 512, 2), c = rows.slice(1, 1, 512, 2);
  EXPECT_LT((s.square() + c.square() - 1).abs().max().item<double>(), 2e-7);
  EXPECT_TRUE(bit_equal(rows[0].slice(0, 1, 512, 2), rows[1].slice(0, 1, 512, 2)));
  EXPECT_NEAR(rows[2][0].item<double>(), std::sin(1999999999.0), 1e-7);
}

TEST(FactoredTable, HoldsTheExactTablesBits) {
  const auto options = SinusoidOptions(96);
  const auto table = sinusoid_table(exact(options), 5000);
  const FactoredTable factored(options, 1000);  // positions beyond the range work too
  EXPECT_TRUE(bit_equal(factored.rows(0, 5000), table));
  EXPECT_TRUE(bit_equal(factored.rows(4000, 7), table.slice(0, 4000, 4007)));
  const auto ids = torch::randint(0, 5000, {3, 40}, torch::kLong);
  EXPECT_TRUE(bit_equal(factored.rows(ids), table.index({ids})));
  EXPECT_TRUE(bit_equal(factored.rows(ids.to(torch::kInt)), table.index({ids})));
  EXPECT_TRUE(bit_equal(factored.rows(-ids), sinusoid_rows(exact(options), -ids)));
  EXPECT_EQ(factored.rows(torch::empty({0, 2}, torch::kLong)).sizes(),
            (std::vector<int64_t>{0, 2, 96}));
}

TEST(FactoredTable, ServesEveryLayoutAndType) {
  for (const char* name : {"fairseq", "musicgen", "hf_marian", "transformer_xl", "ctrl"}) {
    const auto options = preset(name, 33);
    for (const auto dtype : {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf}) {
      const FactoredTable factored(options, 64, dtype);
      const auto positions = torch::tensor({0, 1, 63, 64, 1000000, 2147483646});
      EXPECT_TRUE(bit_equal(factored.rows(positions),
                            sinusoid_rows(exact(options), positions, torch::TensorOptions(dtype))))
          << name;
    }
  }
}

TEST(FactoredTable, TakesMegabytesForAMillionPositions) {
  const FactoredTable factored(SinusoidOptions(1024), 1000000);
  EXPECT_LE(factored.bytes(), int64_t{32} * 1000 * 1000);
}

TEST(ExactErrors, NameWhatIsNotDefined) {
  EXPECT_ERROR(
      sinusoid_table(
          exact(preset("loftr_2d", 16, {{"height", 2}, {"width", 2}, {"temp_bug_fix", 0}})), 4),
      c10::ValueError, "Precision::Exact is not defined for floored exponents");
  EXPECT_ERROR(sinusoid_table(exact(preset("tape", 16)), 4), c10::ValueError,
               "depend on the table's length");
  EXPECT_ERROR(sinusoid_table(exact(preset("nemo_nmt", 16)), 4), c10::ValueError, "rescaled");
  const auto refused = [](const SinusoidOptions& options, const char* what) {
    EXPECT_ERROR(sinusoid_table(exact(options), 4), c10::ValueError, what);
  };
  refused(SinusoidOptions(16).frequency(sinusoid::Frequency::Linear),
          "linearly spaced frequencies");
  refused(SinusoidOptions(16).frequency(sinusoid::Frequency::Periods),
          "frequencies computed from periods");
  refused(SinusoidOptions(16).frequency(sinusoid::Frequency::Power),
          "this phase with this frequency");
  refused(SinusoidOptions(16).phase(sinusoid::Phase::Quotient), "this phase with this frequency");
  refused(SinusoidOptions(16).shift(0.3), "a shift that is not a multiple of 1/2");
  refused(SinusoidOptions(16).coordinates({{false, 0.3}}), "coordinates times no power of two");
  refused(SinusoidOptions(16).grid({4}).axis_values(sinusoid::AxisValues::Scaled),
          "normalised coordinates");
  EXPECT_ERROR(sinusoid_table(exact(SinusoidOptions(16)), 4, torch::TensorOptions(torch::kInt)),
               c10::TypeError, "a table must be float32, float64, bfloat16 or float16. Got Int");
  EXPECT_ERROR(FactoredTable(SinusoidOptions(16), 0), c10::ValueError, "range must lie in");
  EXPECT_ERROR(FactoredTable(preset("detr_2d", 16, {{"height", 2}, {"width", 2}})), c10::ValueError,
               "must have one axis");
  for (const sinusoid::Index index : {sinusoid::Index::Doubled, sinusoid::Index::PairedHalf}) {
    EXPECT_ERROR(FactoredTable(SinusoidOptions(16).index(index)), c10::ValueError,
                 "one frequency for each sine and its cosine");
  }
  const FactoredTable factored(SinusoidOptions(16), 64);
  EXPECT_ERROR(factored.rows(torch::tensor({int64_t{1} << 31})), c10::IndexError,
               "must lie in (-2^31, 2^31). Got 2147483648 at flat index 0");
  EXPECT_ERROR(factored.rows(torch::tensor({int64_t{5}, -(int64_t{1} << 31)})), c10::IndexError,
               "Got -2147483648 at flat index 1");
  EXPECT_ERROR(factored.rows(torch::tensor({0.5})), c10::TypeError, "must be integers");
  EXPECT_ERROR(factored.rows(2147483600, 100), c10::ValueError, "positions must lie in");
}

}  // namespace
}  // namespace posenc
