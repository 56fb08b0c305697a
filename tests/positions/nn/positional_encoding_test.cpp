#include "posenc/positions/nn/positional_encoding.h"

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <atomic>
#include <thread>

#include "posenc/positions/nn/token_and_position_embedding.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/seed.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::OnEachDevice;
using Options = PositionalEncodingOptions;

class Encoding : public OnEachDevice {
 protected:
  torch::Tensor table(int64_t rows, torch::Dtype dtype = torch::kFloat) const {
    return sinusoid_table(SinusoidOptions(6), rows, torch::TensorOptions(dtype).device(device()));
  }
};
POSENC_ON_EACH_DEVICE(Encoding);

TEST_P(Encoding, GrowsWhenAllowedAndKeepsDeviceAndType) {
  for (const auto dtype : {torch::kFloat, torch::kDouble, torch::kBFloat16}) {
    PositionalEncoding module(Options(6, 4).grow(true));
    module->to(device(), dtype);
    const auto x = torch::zeros({2, 9, 6}, torch::TensorOptions(dtype).device(device()));
    const auto y = module->forward(x);
    EXPECT_EQ(y.device(), device());
    EXPECT_TRUE(bit_equal(y[1], table(9, dtype)));
    EXPECT_GE(module->pe.size(1), 9);
    EXPECT_EQ(module->pe.scalar_type(), dtype);
    EXPECT_TRUE(bit_equal(module->named_buffers()["pe"], module->pe));
    EXPECT_TRUE(bit_equal(module->forward(x.slice(1, 0, 1), 30)[0], table(31, dtype).slice(0, 30)));
  }
}

TEST_P(Encoding, GrowthLeavesLoadedRowsAlone) {
  PositionalEncoding module(Options(6, 4).grow(true));
  module->to(device());
  module->pe.add_(1.0);  // like values from a checkpoint
  const auto loaded = module->pe.clone();
  module->forward(torch::zeros({1, 6, 6}, device()));
  EXPECT_TRUE(bit_equal(module->pe.slice(1, 0, 4), loaded));
  EXPECT_TRUE(bit_equal(module->pe[0].slice(0, 4, 6), table(6).slice(0, 4)));
}

TEST_P(Encoding, ATableThatIsTrainedHasAGradientAndDoesNotGrow) {
  for (const bool grow : {false, true}) {
    PositionalEncoding module(Options(6, 4).grow(grow));
    module->to(device());
    module->pe.requires_grad_();
    const auto x = torch::zeros({2, 4, 6}, device());
    module->forward(x).sum().backward();
    EXPECT_EQ(module->pe.grad().sum().item<double>(), 2 * 4 * 6) << grow;
    module->forward(x, 0, torch::tensor({3, 1, 1, 0}, device())).sum().backward();
    EXPECT_EQ(module->pe.grad().sum().item<double>(), 2 * 2 * 4 * 6) << grow;
  }
  PositionalEncoding module(Options(6, 4).grow(true));
  module->to(device());
  module->pe.requires_grad_();
  EXPECT_ERROR(module->forward(torch::zeros({1, 9, 6}, device())), c10::ValueError,
               "a table that requires a gradient cannot grow: it has 4 rows");
  EXPECT_EQ(module->pe.size(1), 4);
  module->pe.requires_grad_(false);
  EXPECT_EQ(module->forward(torch::zeros({1, 9, 6}, device())).size(1), 9);
}

TEST_P(Encoding, WithoutGrowthALongSequenceIsAnErrorAndChangesNothing) {
  PositionalEncoding module(6, 4);
  module->to(device());
  EXPECT_ERROR(module->forward(torch::zeros({1, 5, 6}, device())), c10::ValueError,
               "[PositionalEncoding] sequence length 5 exceeds max_len 4; pass .grow(true)");
  EXPECT_EQ(module->pe.size(1), 4);
}

TEST_P(Encoding, HalfPrecisionIsRebuiltNotCastToAndFro) {
  PositionalEncoding module(6, 50);
  module->to(device());
  for (const auto dtype : {torch::kBFloat16, torch::kHalf, torch::kDouble}) {
    module->to(dtype);
    EXPECT_TRUE(bit_equal(module->pe[0], table(50).to(dtype)));
  }
  module->to(torch::kFloat);
  EXPECT_TRUE(bit_equal(module->pe[0], table(50)));
  module->to(device(), torch::kHalf);
  module->to(device(), torch::kFloat);
  EXPECT_TRUE(bit_equal(module->pe[0], table(50)));
}

TEST_P(Encoding, ATableThatIsNotTheRecipesIsCast) {
  PositionalEncoding module(6, 50);
  module->to(device());
  module->pe.mul_(1.1);
  const auto expected = module->pe.to(torch::kBFloat16);
  module->to(torch::kBFloat16);
  EXPECT_TRUE(bit_equal(module->pe, expected));
}

TEST_P(Encoding, DropoutActsInTrainingOnly) {
  PositionalEncoding module(Options(64, 8).dropout(0.5));
  module->to(device());
  const auto x = torch::ones({4, 8, 64}, device());
  module->eval();
  EXPECT_TRUE(bit_equal(module->forward(x), x + module->pe));
  module->train();
  torch::manual_seed(testing::seed(1));
  const auto y = module->forward(x);
  torch::manual_seed(testing::seed(1));
  EXPECT_TRUE(bit_equal(y, torch::dropout(x + module->pe, 0.5, true)));
  EXPECT_GT(y.eq(0).sum().item<int64_t>(), 100);
}

TEST_P(Encoding, AnyPresetMayBeItsSinusoid) {
  PositionalEncoding module(Options(6, 9).sinusoid(preset("notebook_001", 6)));
  EXPECT_TRUE(bit_equal(module->pe[0], sinusoid_table(preset("notebook_001", 6), 9)));
}

TEST_P(Encoding, OtherStoragesGiveTheSameRowsAndHaveNoEnd) {
  const auto exact = SinusoidOptions(6).precision(Precision::Exact);
  for (const auto source : {TableSource::Factored, TableSource::OnTheFly}) {
    PositionalEncoding module(Options(6, 16).sinusoid(exact).table_source(source));
    PositionalEncoding counterpart(Options(6, 64).sinusoid(exact));
    for (auto m : {module, counterpart}) m->to(device());
    EXPECT_TRUE(module->buffers().empty());
    const auto x = torch::randn({2, 9, 6}).to(device());
    EXPECT_TRUE(bit_equal(module->forward(x), counterpart->forward(x)));
    EXPECT_TRUE(bit_equal(module->forward(x, 40), counterpart->forward(x, 40)));
    EXPECT_TRUE(bit_equal(module->forward(x[0], 3), counterpart->forward(x[0], 3)));
    const auto ids = torch::randint(0, 64, {2, 9}, torch::kLong).to(device());
    EXPECT_TRUE(bit_equal(module->forward(x, 0, ids), counterpart->forward(x, 0, ids)));
    EXPECT_TRUE(bit_equal(module->forward(x, 0, ids[0]), counterpart->forward(x, 0, ids[0])));
    const auto far = torch::tensor({int64_t{2147483647}}).to(device());
    EXPECT_TRUE(bit_equal(module->forward(torch::zeros({1, 6}, device()), 0, far).cpu(),
                          sinusoid_rows(exact, far.cpu())));
    EXPECT_ERROR(module->forward(torch::zeros({1, 6}, device()), 0, far + 1), c10::IndexError,
                 "[PositionalEncoding] every position must lie in [0, 2^31). Got 2147483648");
    EXPECT_NO_THROW(module->forward(x, (int64_t{1} << 31) - 9));
    EXPECT_ERROR(module->forward(x, (int64_t{1} << 31) - 8), c10::ValueError, "below 2^31");
    EXPECT_ERROR(module->forward(x, int64_t{1} << 31), c10::ValueError, "below 2^31");
    EXPECT_ERROR(module->forward(x, -1), c10::ValueError, "offset must not be negative");
    EXPECT_ERROR(module->forward(x, 0, ids.t()), c10::ValueError, "position_ids must be");
    module->to(torch::kBFloat16);
    counterpart->to(torch::kBFloat16);
    const auto half = x.to(torch::kBFloat16);
    EXPECT_TRUE(bit_equal(module->forward(half), counterpart->forward(half)));
    auto copy = std::dynamic_pointer_cast<PositionalEncodingImpl>(module->clone());
    EXPECT_TRUE(bit_equal(copy->forward(half), counterpart->forward(half)));
  }
}

// Whatever positions the sinusoid starts from and steps by, position p without a table has the same
// row as in a table, in every dtype, and positions that a look-up rejects are rejected.
TEST_P(Encoding, WithoutATablePositionsMeanTheSame) {
  const auto x = torch::zeros({2, 5, 6}).to(device());
  const auto ids = torch::randint(0, 9, {2, 5}, torch::kLong).to(device());
  const auto exact = SinusoidOptions(6).precision(Precision::Exact);
  const auto in_double = SinusoidOptions(6).arithmetic(sinusoid::Arithmetic::Float64);
  for (const auto& sinusoid :
       {SinusoidOptions(exact).start(1), SinusoidOptions(exact).start(-3).step(2),
        SinusoidOptions(6).start(1), SinusoidOptions(6).start(0.5).step(0.25), in_double,
        SinusoidOptions(6).start(2).zero_row(0)}) {
    const bool factored = sinusoid.precision() == Precision::Exact;
    for (const auto source : {TableSource::Factored, TableSource::OnTheFly}) {
      if (source == TableSource::Factored && !factored) continue;
      for (const auto dtype : {torch::kFloat, torch::kDouble, torch::kBFloat16}) {
        PositionalEncoding table(Options(6, 16).sinusoid(sinusoid)),
            none(Options(6, 16).sinusoid(sinusoid).table_source(source));
        for (auto m : {table, none}) m->to(device(), dtype);
        const auto y = x.to(dtype);
        EXPECT_TRUE(bit_equal(none->forward(y, 3), table->forward(y, 3)));
        EXPECT_TRUE(bit_equal(none->forward(y, 0, ids), table->forward(y, 0, ids)));
        for (const auto narrow : {torch::kByte, torch::kShort}) {
          EXPECT_TRUE(bit_equal(none->forward(y, 0, ids.to(narrow)), table->forward(y, 0, ids)));
        }
        for (auto m : {table, none}) {
          EXPECT_ERROR(m->forward(y, 0, ids.to(torch::kFloat)), c10::TypeError,
                       "positions must be integers. Got Float");
          if (device().is_cpu()) {
            EXPECT_ERROR(m->forward(y, 0, ids - 9), c10::IndexError, "must lie in [0, ");
          }
        }
      }
    }
  }
}

TEST(PositionalEncodingErrors, ATableThatDependsOnItsLengthHasNoOtherForm) {
  for (const auto rows : {sinusoid::PositionRange::Down, sinusoid::PositionRange::Relative,
                          sinusoid::PositionRange::RelativeDistance}) {
    const auto sinusoid = SinusoidOptions(6).position_range(rows);
    PositionalEncoding table(Options(6, 4).sinusoid(sinusoid));
    for (const auto& options :
         {Options(6, 4).sinusoid(sinusoid).grow(true),
          Options(6, 4).sinusoid(sinusoid).table_source(TableSource::OnTheFly)}) {
      EXPECT_ERROR(PositionalEncoding{options}, c10::ValueError,
                   "[PositionalEncoding] a table must have a fixed length");
    }
  }
  const auto half = SinusoidOptions(6).precision(Precision::Exact).start(0.5);
  EXPECT_ERROR(PositionalEncoding(Options(6, 4).sinusoid(half).table_source(TableSource::Factored)),
               c10::ValueError, "needs integers");
}

// A result computed in no-grad mode is not a view, so it may be modified in place later.
TEST(TokenAndPositionRows, MayBeWrittenInPlaceAfterNoGrad) {
  const auto learned = torch::ones({6}).set_requires_grad(true);
  const auto exact = SinusoidOptions(6).precision(Precision::Exact);
  for (const auto source : {TableSource::Buffer, TableSource::Factored, TableSource::OnTheFly}) {
    TokenAndPositionEmbedding module(
        TokenAndPositionEmbeddingOptions(9, 6, 8).table_source(source).sinusoid(exact));
    torch::Tensor out;
    {
      const torch::NoGradGuard no_grad;
      out = module->forward(torch::tensor({{1, 2}, {3, 4}}), 0, torch::tensor({{0, 1}, {5, 2}}));
    }
    EXPECT_NO_THROW(out.add_(learned));
  }
}

// The table also grows for positions that the CPU look-up finds out of range.
TEST(PositionalEncodingGrowth, ServesExplicitPositions) {
  PositionalEncoding module(Options(6, 4).grow(true));
  const auto ids = torch::tensor({{0, 17, 3}});
  const auto y = module->forward(torch::zeros({1, 3, 6}), 0, ids);
  EXPECT_TRUE(bit_equal(y[0][1], sinusoid_table(SinusoidOptions(6), 18)[17]));
  EXPECT_ERROR(module->forward(torch::zeros({1, 3, 6}), 0, torch::tensor({{0, -1, 3}})),
               c10::IndexError, "Got -1 at index [0, 1]");
}

// A long sequence in InferenceMode does not turn the module's table into an inference tensor.
TEST(PositionalEncodingGrowth, LeavesAnOrdinaryTableInInferenceMode) {
  PositionalEncoding module(Options(6, 4).grow(true));
  {
    const c10::InferenceMode guard;
    module->forward(torch::zeros({1, 9, 6}));
    EXPECT_TRUE(bit_equal(module->pe[0].slice(0, 0, 9), sinusoid_table(SinusoidOptions(6), 9)));
  }
  EXPECT_FALSE(module->pe.is_inference());
  const auto version = module->pe._version();
  module->pe.add_(1.0);  // like a loader
  EXPECT_GT(module->pe._version(), version);
  const auto x = torch::ones({1, 9, 6}).requires_grad_();
  (x * module->pe.slice(1, 0, 9)).sum().backward();  // saves it
  EXPECT_TRUE(bit_equal(x.grad(), module->pe.slice(1, 0, 9)));
}

TEST(PositionalEncodingGrowth, GrowsAModuleMadeInInferenceMode) {
  const auto make = [] {
    const c10::InferenceMode guard;
    return PositionalEncoding(Options(6, 4).grow(true));
  };
  auto module = make();
  ASSERT_TRUE(module->pe.is_inference());
  const auto y = module->forward(torch::zeros({1, 9, 6}));
  EXPECT_TRUE(module->pe.is_inference());
  EXPECT_TRUE(bit_equal(y[0], sinusoid_table(SinusoidOptions(6), 9)));
}

TEST(PositionalEncodingGrowth, GoesByTheLengthAndDoubles) {
  PositionalEncoding module(Options(6, 4).grow(true).batch_first(false));
  const auto present = module->table(4);
  const auto y = module->forward(torch::zeros({5, 2, 6}));  // (L, B, D)
  EXPECT_TRUE(bit_equal(y.select(1, 1).contiguous(), sinusoid_table(SinusoidOptions(6), 5)));
  EXPECT_EQ(module->pe.size(1), 8);
  EXPECT_EQ(present.size(1), 4) << "a handle on the rows as they were";
  const auto by_number = torch::tensor({{8}});
  EXPECT_TRUE(bit_equal(module->forward(torch::zeros({1, 1, 6}), 0, by_number)[0][0],
                        sinusoid_table(SinusoidOptions(6), 9)[8]));
}

// What the loader compares a file's table with.
TEST(PositionalEncodingGrowth, TheRecipeFollowsTheTable) {
  PositionalEncoding module(Options(6, 4).grow(true));
  module->forward(torch::zeros({1, 9, 6}));
  const auto tables = module->computed_tables();
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_TRUE(bit_equal(tables[0].compute(), module->pe));
  module->pe.set_data(torch::zeros({1, 9, 8}));
  EXPECT_FALSE(module->computed_tables()[0].compute().defined()) << "the recipe has another width";
}

TEST(PositionalEncodingGrowth, HasABound) {
  PositionalEncoding module(Options(6, 4).grow(true));
  EXPECT_ERROR(module->forward(torch::zeros({1, 2, 6}), (int64_t{1} << 31) - 1), c10::ValueError,
               "positions must be below 2^31. Got 2147483648");
  EXPECT_ERROR(module->forward(torch::zeros({1, 2, 6}), INT64_MAX), c10::ValueError,
               "exceeds max_len");
  EXPECT_ERROR(module->forward(torch::zeros({1, 2, 6}), -3), c10::ValueError,
               "offset must not be negative. Got -3");
  EXPECT_EQ(module->pe.size(1), 4);
}

TEST(PositionalEncodingGrowth, IsSafeAmongConcurrentForwards) {
  PositionalEncoding module(Options(6, 2).grow(true));
  const auto reference = sinusoid_table(SinusoidOptions(6), 3000);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 4; ++worker) {
    threads.emplace_back([&, worker] {
      torch::NoGradGuard no_grad;
      for (int64_t i = 0; i < 200; ++i) {
        const int64_t length = 1 + (i * 13 + worker * 7) % 2900;
        const auto y = module->forward(torch::zeros({length, 6}));
        if (!y.equal(reference.slice(0, 0, length))) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(PositionalEncodingErrors, NameTheRuleAndTheValue) {
  EXPECT_ERROR(PositionalEncoding(6, 0), c10::ValueError,
               "[PositionalEncoding] max_len must be positive. Got 0");
  EXPECT_ERROR(PositionalEncoding(6, -3), c10::ValueError, "max_len must be positive. Got -3");
  EXPECT_ERROR(PositionalEncoding(0), c10::ValueError, "d_model must be positive. Got 0");
  EXPECT_ERROR(PositionalEncoding(7), c10::ValueError, "dim must be even");
  EXPECT_ERROR(PositionalEncoding(Options(6).dropout(1.0)), c10::ValueError,
               "dropout must lie in [0, 1). Got 1");
  EXPECT_ERROR(PositionalEncoding(Options(6).dropout(-0.5)), c10::ValueError, "Got -0.5");
  EXPECT_ERROR(PositionalEncoding(Options(6).sinusoid(SinusoidOptions(8))), c10::ValueError,
               "the sinusoid's dim must be d_model 6. Got 8");
  EXPECT_NO_THROW(PositionalEncoding(
      Options(7).sinusoid(SinusoidOptions(7).odd_dim(sinusoid::OddDim::ExtraSin))));
}

}  // namespace
}  // namespace posenc
