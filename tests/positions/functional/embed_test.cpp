#include "posenc/positions/functional/embed.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "posenc/positions/nn/input_embedding.h"
#include "posenc/positions/nn/token_and_position_embedding.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/seed.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::OnEachDevice;

class Embed : public OnEachDevice {};
POSENC_ON_EACH_DEVICE(Embed);

// The modules compose their submodules and the function composes functions, with equal results.
TEST_P(Embed, IsTheCounterpartOfTokenAndPositionEmbedding) {
  TokenAndPositionEmbedding module(TokenAndPositionEmbeddingOptions(50, 20, 30).dropout(0.25));
  module->to(device());
  const auto ids = torch::randint(0, 50, {3, 9}, torch::kLong).to(device());
  for (const bool training : {false, true}) {
    module->train(training);
    const auto how = functional::EmbedFuncOptions()
                         .scale(Scale::SqrtDim)
                         .position(functional::PositionalEncodingFuncOptions().offset(4))
                         .dropout(0.25)
                         .training(training);
    torch::manual_seed(testing::seed(3));
    const auto expected = module->forward(ids, 4);
    torch::manual_seed(testing::seed(3));
    EXPECT_TRUE(bit_equal(
        functional::embed(ids, module->token_embedding->weight, module->position_encoding->pe, how),
        expected));
  }
}

TEST_P(Embed, IsTheCounterpartOfInputEmbedding) {
  InputEmbedding module(50, 20, 30);
  module->to(device());
  const auto ids = torch::randint(0, 50, {3, 9}, torch::kLong).to(device());
  EXPECT_TRUE(bit_equal(
      functional::embed(ids, module->token_embedding->embedding->weight, module->pos_encoding->pe),
      module->forward(ids)));
}

TEST(EmbedErrors, RejectDropoutOutsideItsRange) {
  const auto weight = torch::randn({5, 4}), table = torch::randn({6, 4});
  const auto ids = torch::tensor({1, 2});
  for (const double p : {-0.1, 1.0, 1.5}) {
    EXPECT_ERROR(functional::embed(ids, weight, table, functional::EmbedFuncOptions().dropout(p)),
                 c10::ValueError, "dropout must lie in [0, 1)");
  }
}

TEST_P(Embed, OutIsWrittenInPlace) {
  const auto weight = torch::randn({9, 6}).to(device()), table = torch::randn({7, 6}).to(device());
  const auto ids = torch::randint(0, 9, {2, 5}, torch::kLong).to(device());
  const auto how = functional::EmbedFuncOptions().scale(Scale::SqrtDim).dropout(0.5).training(true);
  torch::manual_seed(testing::seed(1));
  const auto expected = functional::embed(ids, weight, table, how);
  const auto wide = torch::zeros({2, 5, 8}, device());
  for (const auto& out : {torch::full({2, 5, 6}, NAN, device()), wide.slice(2, 1, 7)}) {
    torch::manual_seed(testing::seed(1));
    EXPECT_TRUE(functional::embed_out(out, ids, weight, table, how).is_same(out));
    EXPECT_TRUE(bit_equal(out, expected));
  }
  EXPECT_EQ(wide.select(2, 0).count_nonzero().item<int64_t>(), 0);
  EXPECT_EQ(wide.select(2, 7).count_nonzero().item<int64_t>(), 0);
}

TEST(EmbedErrors, RefuseAnOutThatDoesNotFit) {
  const auto weight = torch::randn({9, 6}), table = torch::randn({7, 6});
  const auto ids = torch::randint(0, 9, {2, 5}, torch::kLong);
  const auto into = [&](const torch::Tensor& out) {
    functional::embed_out(out, ids, weight, table);
  };
  EXPECT_ERROR(into({}), c10::ValueError, "out must be a defined tensor");
  EXPECT_ERROR(into(torch::empty({2, 6})), c10::ValueError, "= [2, 5, 6]. Got [2, 6]");
  EXPECT_ERROR(into(torch::empty({2, 5, 6}, torch::kHalf)), c10::TypeError, "Float. Got Half");
  EXPECT_ERROR(into(torch::empty({2, 5, 6}, torch::kMeta)), c10::ValueError,
               "device cpu. Got meta");
  EXPECT_ERROR(into(torch::zeros({2, 5, 6}).to_sparse()), c10::TypeError, "out must be strided");
  EXPECT_ERROR(into(torch::empty({2, 1, 6}).expand({2, 5, 6})), c10::ValueError,
               "each element in a place of its own");
  EXPECT_ERROR(into(torch::empty({2, 5, 6}).requires_grad_()), c10::ValueError, "NoGradGuard");
  const auto memory = torch::randn({200});
  const auto inside = memory.slice(0, 10, 70).view({2, 5, 6});
  for (const auto& [begin, rows] : {std::pair<int64_t, int64_t>{64, 9}, {0, 7}, {69, 9}}) {
    const auto other = memory.slice(0, begin, begin + rows * 6).view({rows, 6});
    EXPECT_ERROR(functional::embed_out(inside, ids.clamp_max(6), other, table), c10::ValueError,
                 "share memory with weight");
    EXPECT_ERROR(functional::embed_out(inside, ids, weight, other), c10::ValueError,
                 "share memory with table");
  }
  EXPECT_NO_THROW(functional::embed_out(inside, ids.clamp_max(6), weight,
                                        memory.slice(0, 70, 112).view({7, 6})));
  const auto trained = weight.clone().requires_grad_();
  const auto out = torch::empty({2, 5, 6});
  EXPECT_ERROR(functional::embed_out(out, ids, trained, table), c10::ValueError, "NoGradGuard");
  EXPECT_ERROR(functional::embed_out(out, ids, weight, table.clone().requires_grad_()),
               c10::ValueError, "NoGradGuard");
  const torch::NoGradGuard guard;
  EXPECT_NO_THROW(functional::embed_out(out, ids, trained, table));
}

// Nothing is drawn, read or written before all ids and positions are validated.
TEST(EmbedErrors, NameBadIdsOnEveryPathAndLeaveEverythingAlone) {
  const auto table = torch::randn({700, 33});
  InputEmbedding input(50, 34, 600);
  TokenAndPositionEmbedding both(50, 34, 600);
  for (const auto dtype : {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf}) {
    for (const auto width : {torch::kLong, torch::kInt}) {
      for (const int64_t bad : {int64_t{-1}, int64_t{50}, int64_t{INT32_MAX}, int64_t{INT32_MIN}}) {
        const auto weight = torch::randn({50, 33}).to(dtype).requires_grad_();
        auto ids = torch::randint(0, 50, {5, 600}, width);
        ids.index_put_({torch::tensor(3), torch::tensor(599)}, bad);
        const auto how = functional::EmbedFuncOptions().dropout(0.1).training(true);
        const auto positions = table.to(dtype);
        const auto state = at::detail::getDefaultCPUGenerator().get_state();
        const auto text = c10::str("every id must lie in [0, vocab_size) = [0, 50). Got ", bad,
                                   " at index [3, 599]");
        EXPECT_ERROR(functional::embed(ids, weight, positions, how), c10::IndexError, text);
        EXPECT_ERROR(functional::token_embedding(ids, weight, Scale::SqrtDim), c10::IndexError,
                     text);
        EXPECT_ERROR(input->forward(ids), c10::IndexError, text);
        EXPECT_ERROR(both->forward(ids), c10::IndexError, text);
        const torch::NoGradGuard guard;
        const auto out = torch::full({5, 600, 33}, 7, weight.options());
        EXPECT_ERROR(functional::embed_out(out, ids, weight, positions, how), c10::IndexError,
                     text);
        EXPECT_TRUE(out.eq(7).all().item<bool>());
        EXPECT_TRUE(bit_equal(at::detail::getDefaultCPUGenerator().get_state(), state));
        auto where = functional::EmbedFuncOptions();
        where.position().position_ids(torch::full_like(ids, bad == 50 ? 700 : bad));
        EXPECT_ERROR(functional::embed(ids.clamp(0, 49), weight, positions, where), c10::IndexError,
                     "every position must lie in [0, max_len) = [0, 700)");
      }
    }
  }
}

}  // namespace
}  // namespace posenc
