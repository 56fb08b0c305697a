// InputEmbedding, TokenAndPositionEmbedding, PositionEmbedding and TimestepEmbedding, beyond what
// module_laws_test.cpp tests for all modules.

#include <ATen/core/LegacyTypeDispatch.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "posenc/positions/nn/input_embedding.h"
#include "posenc/positions/nn/position_embedding.h"
#include "posenc/positions/nn/timestep_embedding.h"
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
using RegisterAs = PositionEmbeddingOptions::RegisterAs;

class Composite : public OnEachDevice {};
POSENC_ON_EACH_DEVICE(Composite);

// The table of a module that is drawn with `init`, at first and again. Its padding row is zero.
template <typename Holder, typename Options>
void expect_drawn_with(EmbeddingInit init, const char* table, double deviation) {
  torch::manual_seed(testing::seed(21));
  Holder module(Options(200, 64).padding_idx(-2).embedding_init(init));
  for (int draw = 0; draw < 2; ++draw) {
    const auto weight = module->named_parameters()[table];
    EXPECT_TRUE(weight[198].eq(0).all().template item<bool>()) << table;
    EXPECT_NEAR(weight.narrow(0, 0, 198).std().template item<double>(), deviation, 0.05 * deviation)
        << table;
    module->reset_parameters();
  }
}

TEST(CompositeInit, IsNnEmbeddingsUnlessAnotherIsSet) {
  for (const auto& [init, deviation] : {std::pair(EmbeddingInit::StandardNormal, 1.0),
                                        std::pair(EmbeddingInit::InverseSqrtDim, 0.125)}) {
    expect_drawn_with<TokenEmbedding, TokenEmbeddingOptions>(init, "embedding.weight", deviation);
    expect_drawn_with<InputEmbedding, InputEmbeddingOptions>(
        init, "token_embedding.embedding.weight", deviation);
    expect_drawn_with<TokenAndPositionEmbedding, TokenAndPositionEmbeddingOptions>(
        init, "token_embedding.weight", deviation);
  }
  EXPECT_EQ(TokenEmbeddingOptions(5, 4).embedding_init(), EmbeddingInit::StandardNormal);
  EXPECT_EQ(InputEmbeddingOptions(5, 4).embedding_init(), EmbeddingInit::StandardNormal);
  EXPECT_EQ(TokenAndPositionEmbeddingOptions(5, 4).embedding_init(), EmbeddingInit::StandardNormal);
}

TEST_P(Composite, IncrementalEqualsFullAndABatchItsRows) {
  TokenAndPositionEmbedding module(40, 20, 16);
  module->to(device());
  module->eval();
  const auto ids = torch::randint(0, 40, {3, 16}, torch::kLong).to(device());
  const auto full = module->forward(ids);
  for (int64_t p = 0; p < 16; ++p) {
    EXPECT_TRUE(bit_equal(module->forward(ids.slice(1, p, p + 1), p), full.slice(1, p, p + 1)));
  }
  EXPECT_TRUE(bit_equal(module->forward(ids[2]), full[2]));
  const auto positions = torch::arange(16).to(device()).expand({3, 16});
  EXPECT_TRUE(bit_equal(module->forward(ids, 0, positions), full));
}

TEST_P(Composite, SequenceFirstIsTheTranspose) {
  TokenAndPositionEmbedding module(TokenAndPositionEmbeddingOptions(40, 20, 16).batch_first(false));
  TokenAndPositionEmbedding counterpart(40, 20, 16);
  for (auto m : {module, counterpart}) {
    m->to(device());
    m->eval();
  }
  counterpart->token_embedding->weight.set_data(module->token_embedding->weight);
  const auto ids = torch::randint(0, 40, {3, 7}, torch::kLong).to(device());
  EXPECT_TRUE(
      bit_equal(module->forward(ids.t()).transpose(0, 1).contiguous(), counterpart->forward(ids)));
}

// The fused and the composed path agree for every source of rows, layout and kind of position.
TEST_P(Composite, EmbedsInOnePassAsItsPartsDo) {
  using PositionSource = posenc::TableSource;
  const auto exact = SinusoidOptions(20).precision(Precision::Exact);
  for (const auto source :
       {PositionSource::Buffer, PositionSource::Factored, PositionSource::OnTheFly}) {
    for (const bool batch_first : {true, false}) {
      for (const bool grow : {false, true}) {
        TokenAndPositionEmbedding module(TokenAndPositionEmbeddingOptions(40, 20, 9)
                                             .table_source(source)
                                             .batch_first(batch_first)
                                             .grow(grow)
                                             .sinusoid(exact)
                                             .padding_idx(3));
        module->to(device());
        const auto ids = torch::randint(0, 40, {5, 6}, torch::kLong).to(device());
        const auto line = torch::randint(0, 9, {batch_first ? 6 : 5}, torch::kLong).to(device());
        const auto each = torch::randint(0, 9, {5, 6}, torch::kLong).to(device());
        const auto parts = [&](int64_t offset, const torch::Tensor& position_ids) {
          const auto tokens = module->token_embedding->forward(ids) * std::pow(20.0, 0.5);
          return module->dropout->forward(
              module->position_encoding->forward(tokens, offset, position_ids));
        };
        const auto both = [&](int64_t offset, const torch::Tensor& position_ids) {
          torch::manual_seed(testing::seed(8));
          const auto expected = parts(offset, position_ids);
          torch::manual_seed(testing::seed(8));
          EXPECT_TRUE(bit_equal(module->forward(ids, offset, position_ids), expected));
        };
        both(3, {});
        both(0, line);
        both(0, each);
        if (grow || source != PositionSource::Buffer) both(30, {});
      }
    }
  }
}

TEST(CompositeReuse, ReusesTheLastOutputOnlyIfNotHeld) {
  InputEmbedding module(InputEmbeddingOptions(40, 20, 16).reuse_output(true));
  InputEmbedding plain(40, 20, 16);
  plain->token_embedding->embedding->weight.set_data(module->token_embedding->embedding->weight);
  const torch::NoGradGuard guard;
  const auto ids = torch::randint(0, 40, {3, 16}, torch::kLong);
  auto first = module->forward(ids);
  const auto held = module->forward(ids + 0);
  EXPECT_NE(first.data_ptr(), held.data_ptr());
  const void* const address = held.data_ptr();
  first = module->forward(ids);  // held is alive
  EXPECT_NE(first.data_ptr(), address);
  const void* const free = first.data_ptr();
  first = torch::Tensor();
  auto again = module->forward(ids);
  EXPECT_EQ(again.data_ptr(), free);
  EXPECT_TRUE(bit_equal(again, plain->forward(ids)));
  const auto view = again.slice(0, 1);  // a view keeps the memory alive
  again = torch::Tensor();
  EXPECT_NE(module->forward(ids).data_ptr(), free);
  EXPECT_EQ(module->forward(ids.slice(0, 1)).size(0), 2);
  const torch::AutoGradMode recording(true);
  const auto a = module->forward(ids).data_ptr();
  const auto b = module->forward(ids);
  EXPECT_TRUE(b.requires_grad());
  (void)a;
}

TEST(CompositeReuse, ACopyStartsWithoutAnOutput) {
  TokenAndPositionEmbedding module(
      TokenAndPositionEmbeddingOptions(40, 20, 16).dropout(0.0).reuse_output(true));
  const torch::NoGradGuard guard;
  const auto ids = torch::randint(0, 40, {3, 16}, torch::kLong);
  const void* const address = module->forward(ids).data_ptr();
  const auto copy = std::dynamic_pointer_cast<TokenAndPositionEmbeddingImpl>(module->clone());
  EXPECT_NE(copy->forward(ids).data_ptr(), address);
  EXPECT_EQ(module->forward(ids).data_ptr(), address);
}

TEST(CompositeSharing, ASharedTableKeepsItsOwnPaddingRow) {
  const auto gradient = [](std::optional<int64_t> own, std::optional<int64_t> shared) {
    TokenAndPositionEmbedding source(
        TokenAndPositionEmbeddingOptions(10, 8, 6).padding_idx(shared).dropout(0.0));
    TokenAndPositionEmbedding module(
        TokenAndPositionEmbeddingOptions(10, 8, 6).padding_idx(own).dropout(0.0));
    module->share_tokens(source->token_embedding);
    module->forward(torch::tensor({{1, 2, 0, 0}})).sum().backward();
    return source->token_embedding->weight.grad()[0].abs().sum().item<double>();
  };
  EXPECT_EQ(gradient(std::nullopt, 0), 0.0);
  EXPECT_GT(gradient(0, std::nullopt), 0.0);
}

TEST(CompositeReuse, GivesTheTypeOfTheSumAfterAPartialConversion) {
  for (const bool reuse : {false, true}) {
    TokenAndPositionEmbedding module(
        TokenAndPositionEmbeddingOptions(10, 8, 6).dropout(0.0).reuse_output(reuse));
    const torch::NoGradGuard guard;
    const auto ids = torch::tensor({{1, 2, 3}});
    module->forward(ids);
    module->position_encoding->to(torch::kDouble);
    EXPECT_EQ(module->forward(ids).scalar_type(), torch::kDouble) << reuse;
  }
}

TEST(CompositeReuse, TakesFreshMemoryWhereTheLastOutputMayNotBeWritten) {
  TokenAndPositionEmbedding module(
      TokenAndPositionEmbeddingOptions(40, 20, 16).dropout(0.0).reuse_output(true));
  const auto ids = torch::randint(0, 40, {3, 16}, torch::kLong);
  const auto leave_an_output = [&] {
    const torch::NoGradGuard guard;
    return module->forward(ids).clone();
  };
  const auto expected = leave_an_output();
  {
    const at::AutoDispatchBelowAutograd below;
    EXPECT_TRUE(bit_equal(module->forward(ids), expected));
  }
  leave_an_output();
  module->token_embedding->weight.requires_grad_(false);
  module->position_encoding->pe.requires_grad_();
  EXPECT_TRUE(module->forward(ids).requires_grad());
}

TEST(CompositeDropout, DropsAllElementsIfPIsOne) {
  TokenAndPositionEmbedding module(40, 20, 16);
  module->dropout->options.p(1.0);
  const auto ids = torch::randint(0, 40, {3, 16}, torch::kLong);
  EXPECT_EQ(module->forward(ids).count_nonzero().item<int64_t>(), 0);
  module->eval();
  EXPECT_NE(module->forward(ids).count_nonzero().item<int64_t>(), 0);
}

TEST(CompositeGrowth, IsNotForABadToken) {
  TokenAndPositionEmbedding module(TokenAndPositionEmbeddingOptions(40, 20, 16).grow(true));
  const auto bad = torch::full({1, 4}, 99, torch::kLong);
  const auto far = torch::full({4}, 100, torch::kLong);
  EXPECT_THROW(module->forward(bad, 0, far), c10::IndexError);
  EXPECT_THROW(module->forward(bad, 0, torch::empty({0}, torch::kLong)), c10::Error);
  EXPECT_THROW(module->forward(torch::full({1, 40}, 99, torch::kLong)), c10::IndexError);
  EXPECT_EQ(module->position_encoding->pe.size(1), 16);
  EXPECT_EQ(module->forward(bad - 98, 0, far).size(1), 4);
  EXPECT_EQ(module->position_encoding->pe.size(1), 101);
  EXPECT_THROW(module->forward(bad - 98, (int64_t{1} << 31) - 2), c10::ValueError);
  EXPECT_THROW(module->forward(bad - 98, std::numeric_limits<int64_t>::max()), c10::ValueError);
}

// The first position beyond the table, by length, by offset and by number.
TEST(CompositeGrowth, IsByASingleRowToo) {
  const auto row = sinusoid_table(SinusoidOptions(20), 17)[16];
  const auto ids = torch::zeros({1, 17}, torch::kLong);
  for (const auto& [length, offset, position] :
       {std::tuple<int64_t, int64_t, int64_t>(17, 0, -1), {2, 15, -1}, {1, 0, 16}}) {
    TokenAndPositionEmbedding module(
        TokenAndPositionEmbeddingOptions(40, 20, 16).dropout(0.0).grow(true));
    const auto y =
        module->forward(ids.slice(1, 0, length), offset,
                        position < 0 ? torch::Tensor() : torch::tensor({position}, torch::kLong));
    const auto token = module->token_embedding->weight[0] * std::pow(20.0, 0.5);
    EXPECT_TRUE(bit_equal(y[0][-1], token + row)) << length << " at " << offset;
  }
}

TEST_P(Composite, PositionEmbeddingHoldsItsNotebooksTable) {
  const auto options = PositionEmbeddingOptions(18).max_len(30);
  PositionEmbedding frozen(options);
  PositionEmbedding buffer(PositionEmbeddingOptions(options).register_as(RegisterAs::Buffer));
  EXPECT_TRUE(bit_equal(frozen->table().detach(), sinusoid_table(preset("notebook_002", 18), 30)));
  EXPECT_TRUE(bit_equal(buffer->table(), sinusoid_table(preset("notebook_004", 18), 30)));
  for (auto module : {frozen, buffer}) {
    module->to(device());
    const auto ids = torch::tensor({{{29, 0}, {4, 4}}}).to(device());
    EXPECT_TRUE(bit_equal(module->forward(ids), module->table().index({ids})));
    const auto before = module->table().clone();
    module->to(torch::kBFloat16);
    module->to(torch::kFloat);
    EXPECT_TRUE(bit_equal(module->table(), before));
  }
}

TEST_P(Composite, TimestepIsAddedToTheNotebooksImage) {
  TimestepEmbedding module(128, 1);
  module->to(device());
  const auto t = torch::randint(0, 100, {16, 1}, torch::kLong).to(device());
  EXPECT_EQ(module->forward(t).sizes(), (std::vector<int64_t>{16, 1, 1, 1}));
  const auto image = torch::randn({1, 28, 28}).to(device());
  const auto sum = module->add_to(image, t);
  EXPECT_EQ(sum.sizes(), (std::vector<int64_t>{16, 1, 28, 28}));
  EXPECT_TRUE(bit_equal(sum[5], image + module->forward(t)[5]));
}

// The order of these numbers was once the other way round, so old calls must not compile.
template <typename T>
constexpr bool kTakesTwoNumbers = std::is_constructible_v<T, int64_t, int64_t>;
template <typename T>
constexpr bool kTakesThreeNumbers = std::is_constructible_v<T, int64_t, int64_t, int64_t>;
static_assert(!kTakesTwoNumbers<PositionEmbeddingOptions>);
static_assert(!kTakesTwoNumbers<PositionEmbeddingImpl>);
static_assert(!kTakesThreeNumbers<TimestepEmbeddingOptions>);
static_assert(!kTakesThreeNumbers<TimestepEmbeddingImpl>);
static_assert(kTakesTwoNumbers<TimestepEmbeddingImpl>);
static_assert(kTakesTwoNumbers<PositionalEncodingImpl>);

TEST(CompositeOptions, OfTheTokensReachTheTable) {
  const InputEmbeddingOptions options(9, 6, 4);
  EXPECT_FALSE(InputEmbedding(InputEmbeddingOptions(options).freeze(true))
                   ->token_embedding->embedding->weight.requires_grad());
  const auto gradient_of = [](auto module, const torch::Tensor& weight) {
    module->forward(torch::tensor({{1, 0, 1}})).sum().backward();
    return weight.grad();
  };
  InputEmbedding one(InputEmbeddingOptions(options).sparse(true).padding_idx(0));
  const auto of_one = gradient_of(one, one->token_embedding->embedding->weight);
  TokenAndPositionEmbedding other(
      TokenAndPositionEmbeddingOptions(9, 6, 4).sparse(true).padding_idx(0));
  const auto of_other = gradient_of(other, other->token_embedding->weight);
  for (const auto& gradient : {of_one, of_other}) {
    ASSERT_TRUE(gradient.is_sparse());
    EXPECT_TRUE(bit_equal(gradient.coalesce().indices(), torch::tensor({{1}})));
  }
}

TEST(CompositeErrors, NameTheRuleAndTheValue) {
  EXPECT_ERROR(PositionEmbedding(PositionEmbeddingOptions(6).max_len(0)), c10::ValueError,
               "[PositionEmbedding] max_len must be positive. Got 0");
  EXPECT_ERROR(PositionEmbedding(5), c10::ValueError, "dim must be even");
  EXPECT_ERROR(PositionEmbedding(PositionEmbeddingOptions(6).sinusoid(SinusoidOptions(8))),
               c10::ValueError, "the sinusoid's dim must be d_model 6. Got 8");
  EXPECT_ERROR(
      PositionEmbedding(PositionEmbeddingOptions(6).max_len(4))->forward(torch::tensor({4})),
      c10::IndexError, "every position must lie in [0, max_len) = [0, 4). Got 4");
  EXPECT_ERROR(InputEmbedding(InputEmbeddingOptions(9, 6).sinusoid(SinusoidOptions(8))),
               c10::ValueError, "the sinusoid's dim must be d_model 6. Got 8");
  EXPECT_ERROR(InputEmbedding(InputEmbeddingOptions(9, 6).dropout(1)), c10::ValueError,
               "dropout must lie in [0, 1). Got 1");
  using Options = TokenAndPositionEmbeddingOptions;
  EXPECT_ERROR(TokenAndPositionEmbedding(Options(9, 6).dropout(1)), c10::ValueError,
               "[TokenAndPositionEmbedding] dropout must lie in [0, 1). Got 1");
  EXPECT_ERROR(TokenAndPositionEmbedding(0, 6), c10::ValueError, "vocab_size must be positive");
  EXPECT_ERROR(TokenAndPositionEmbedding(9, 6, 0), c10::ValueError, "max_len must be positive");
  EXPECT_ERROR(TokenAndPositionEmbedding(9, 7), c10::ValueError, "dim must be even");
  EXPECT_ERROR(TokenAndPositionEmbedding(Options(9, 6).sinusoid(SinusoidOptions(8))),
               c10::ValueError, "the sinusoid's dim must be d_model 6. Got 8");
  EXPECT_ERROR(TimestepEmbedding(6, 0), c10::ValueError, "channels must be positive. Got 0");
  EXPECT_ERROR(TimestepEmbedding(TimestepEmbeddingOptions(6, 1).hidden(-1)), c10::ValueError,
               "hidden must be positive. Got -1");
  TokenAndPositionEmbedding module(9, 6, 4);
  EXPECT_ERROR(module->forward(torch::zeros({1, 5}, torch::kLong)), c10::ValueError,
               "sequence length 5 exceeds max_len 4");
  EXPECT_ERROR(module->forward(torch::tensor({{9}})), c10::IndexError, "Got 9 at index [0, 0]");
  for (const bool grow : {false, true}) {
    TokenAndPositionEmbedding either(Options(9, 6, 4).grow(grow));
    EXPECT_ERROR(either->forward(torch::tensor({{1}}), 2, torch::tensor({0})), c10::ValueError,
                 "offset must be 0 beside them. Got 2");
  }
  module->token_embedding->options.max_norm(2.0);
  EXPECT_ERROR(module->forward(torch::tensor({{1}})), c10::ValueError,
               "[TokenAndPositionEmbedding] max_norm is not supported");
  InputEmbedding other(9, 6, 4);
  other->token_embedding->embedding->options.scale_grad_by_freq(true);
  EXPECT_ERROR(other->forward(torch::tensor({{1}})), c10::ValueError,
               "scale_grad_by_freq is not supported");
}

}  // namespace
}  // namespace posenc
