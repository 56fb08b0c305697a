#include "posenc/nn/embedding_front.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/embedding.h>
#include <torch/nn/functional/normalization.h>
#include <torch/utils.h>

#include <limits>

#include "posenc/io/error.h"
#include "posenc/io/load.h"
#include "posenc/io/state_dict.h"
#include "posenc/sinusoid/table.h"
#include "support/compare.h"
#include "support/seed.h"

namespace posenc {
namespace {

namespace TF = torch::nn::functional;
using front::Norm;
using front::PositionIds;
using testing::bit_equal;
using testing::message_of;

// BERT with 9 tokens, 6 positions and 2 types.
EmbeddingFrontOptions small_bert() {
  return EmbeddingFrontOptions(9, 4).position_rows(6).type_vocab_size(2).norm(Norm::AfterSum);
}
EmbeddingFrontOptions small_roberta() {
  return small_bert().padding_idx(1).position_padding_idx(1).position_ids(PositionIds::FromIds);
}
EmbeddingFrontOptions small_opt() {
  return EmbeddingFrontOptions(9, 4).position_rows(8).position_offset(2).position_ids(
      PositionIds::FromMask);
}
torch::Tensor front_ids() { return torch::tensor({{3, 1, 5}, {2, 8, 1}}); }
std::string front_refusal(const EmbeddingFrontOptions& options, const torch::Tensor& ids,
                          const EmbeddingFrontInputs& inputs = {}) {
  EmbeddingFront front(options);
  return message_of([&] { front->forward(ids, inputs); });
}
EmbeddingFrontInputs with_types(const torch::Tensor& types) {
  return EmbeddingFrontInputs().token_type_ids(types);
}
EmbeddingFrontInputs with_positions(const torch::Tensor& positions) {
  return EmbeddingFrontInputs().position_ids(positions);
}
EmbeddingFrontInputs with_mask(const torch::Tensor& mask) {
  return EmbeddingFrontInputs().attention_mask(mask);
}

TEST(EmbeddingFront, IsTheSumOfItsTablesInTheGivenOrder) {
  torch::manual_seed(testing::seed(0));
  EmbeddingFront front(small_bert());
  const auto types = torch::tensor({{0, 1, 1}, {1, 0, 0}});
  const auto sum = front->tokens(front_ids()) + front->token_types(types) +
                   front->positions->weight.slice(0, 0, 3).unsqueeze(0);
  const auto expected = TF::layer_norm(
      sum,
      TF::LayerNormFuncOptions({4}).weight(front->norm->weight).bias(front->norm->bias).eps(1e-12));
  EXPECT_TRUE(bit_equal(front->forward(front_ids(), with_types(types)), expected));
  EXPECT_TRUE(bit_equal(front->forward(front_ids()[0], with_types(types[0])), expected[0]));
}

TEST(EmbeddingFront, InitialWeightsAreThoseOfPyTorchsModules) {
  torch::manual_seed(testing::seed(1));
  EmbeddingFront front(small_bert().padding_idx(-2).position_padding_idx(3));
  torch::manual_seed(testing::seed(1));
  const torch::nn::Embedding tokens(torch::nn::EmbeddingOptions(9, 4).padding_idx(7));
  const torch::nn::Embedding positions(torch::nn::EmbeddingOptions(6, 4).padding_idx(3));
  const torch::nn::Embedding types(2, 4);
  EXPECT_TRUE(bit_equal(front->tokens->weight, tokens->weight));
  EXPECT_TRUE(bit_equal(front->positions->weight, positions->weight));
  EXPECT_TRUE(bit_equal(front->token_types->weight, types->weight));
  front->forward(front_ids()).sum().backward();
  EXPECT_TRUE(bit_equal(front->tokens->weight.grad()[7], torch::zeros({4})));
}

TEST(EmbeddingFront, NumbersTokensAsRoberta) {
  EmbeddingFront front(small_roberta().norm(Norm::None));
  const auto rows = torch::tensor({{2, 1, 3}, {2, 3, 1}});
  const auto expected =
      front->tokens(front_ids()) + front->token_types->weight[0] + front->positions->forward(rows);
  EXPECT_TRUE(bit_equal(front->forward(front_ids()), expected));
  EXPECT_EQ(front->max_tokens(), 4);
}

TEST(EmbeddingFront, HoldsAsManyTokensAsItsTableHasRows) {
  EmbeddingFront front(EmbeddingFrontOptions(9, 4).position_rows(10));
  front->positions->resize(2, 4, PositionResize::Bicubic, 1);
  EmbeddingFront copy(std::dynamic_pointer_cast<EmbeddingFrontImpl>(front->clone()));
  for (auto* one : {&front, &copy}) {
    EXPECT_EQ((*one)->max_tokens(), 9);
    EXPECT_EQ((*one)->forward(torch::zeros({1, 9}, torch::kLong)).size(1), 9);
    EXPECT_ERROR((*one)->forward(torch::zeros({1, 10}, torch::kLong)), c10::IndexError,
                 "holds 9 tokens. Got 10");
  }
}

TEST(EmbeddingFront, NumbersTokensByTheMaskAsOpt) {
  EmbeddingFront front(small_opt());
  const auto expected = [&](const torch::Tensor& rows) {
    return front->tokens(front_ids()) + front->positions->weight.index({rows});
  };
  const auto rows = torch::tensor({{1, 2, 3}, {2, 1, 3}});
  const auto mask = torch::tensor({{0, 1, 1}, {1, 0, 1}});
  for (const auto dtype : {torch::kLong, torch::kInt, torch::kUInt8, torch::kBool, torch::kFloat})
    EXPECT_TRUE(bit_equal(front->forward(front_ids(), with_mask(mask.to(dtype))), expected(rows)));
  EXPECT_TRUE(bit_equal(front->forward(front_ids()), expected(torch::arange(2, 5))));
  const auto longer = torch::tensor({{1, 1, 0, 1, 1}, {1, 0, 1, 0, 1}});  // after two tokens
  EXPECT_TRUE(bit_equal(front->forward(front_ids(), with_mask(longer).offset(2)),
                        expected(torch::tensor({{1, 4, 5}, {3, 1, 4}}))));
}

TEST(EmbeddingFront, OffsetsAreAddedToGivenPositionsAndFirstPositionsAreNot) {
  const auto given = torch::tensor({1, 0, 3});
  const auto base = EmbeddingFrontOptions(9, 4).position_rows(8);
  EmbeddingFront bart(EmbeddingFrontOptions(base).position_offset(2));
  EmbeddingFront nystromformer(EmbeddingFrontOptions(base).first_position(2));
  const auto added = [&](EmbeddingFront& front, const EmbeddingFrontInputs& inputs) {
    return front->forward(front_ids(), inputs) - front->tokens(front_ids());
  };
  const auto near = [](const torch::Tensor& got, const torch::Tensor& row) {
    return torch::allclose(got, row.expand_as(got), 1e-5, 1e-6);
  };
  EXPECT_TRUE(near(added(bart, with_positions(given)), bart->positions->weight.index({given + 2})));
  EXPECT_TRUE(near(added(nystromformer, with_positions(given.unsqueeze(0))),
                   nystromformer->positions->weight.index({given})));
  for (auto* front : {&bart, &nystromformer})
    EXPECT_TRUE(near(added(*front, EmbeddingFrontInputs().offset(1)),
                     (*front)->positions->weight.slice(0, 3, 6)));
  EXPECT_EQ(bart->max_tokens(), 6);
  EXPECT_EQ(nystromformer->max_tokens(), 6);
}

// Autograd sums in the order of transformers: over the batch first, or row by row.
TEST(EmbeddingFront, ExpandedPositionsAreSummedOneByOne) {
  torch::manual_seed(testing::seed(2));
  const auto ids = torch::randint(9, {300, 5});
  const auto grad_of = [&](PositionIds rule) {
    EmbeddingFront front(EmbeddingFrontOptions(9, 4).position_rows(6).position_ids(rule));
    torch::manual_seed(testing::seed(3));
    const auto cotangent = torch::randn({300, 5, 4});
    (front->forward(ids) * cotangent).sum().backward();
    auto one_by_one = torch::zeros({5, 4});
    for (int64_t i = 0; i < 300; ++i) one_by_one = one_by_one + cotangent[i];
    const auto whole = rule == PositionIds::Arange ? cotangent.sum(0) : one_by_one;
    return bit_equal(front->positions->weight.grad().slice(0, 0, 5), whole);
  };
  EXPECT_TRUE(grad_of(PositionIds::Arange));
  EXPECT_TRUE(grad_of(PositionIds::ArangeExpanded));
}

TEST(EmbeddingFront, ASinusoidIsFrozenAndDrawsNothing) {
  const auto options = EmbeddingFrontOptions(9, 4).position_rows(6).sinusoid(SinusoidOptions(4));
  torch::manual_seed(testing::seed(4));
  EmbeddingFront front(options);
  const auto next = torch::rand({2});
  torch::manual_seed(testing::seed(4));
  const torch::nn::Embedding tokens(9, 4);
  EXPECT_TRUE(bit_equal(next, torch::rand({2})));
  const auto table = sinusoid_table(SinusoidOptions(4), 6);
  EXPECT_TRUE(bit_equal(front->positions->weight, table));
  EXPECT_FALSE(front->positions->weight.requires_grad());
  front->reset_parameters();
  EXPECT_TRUE(bit_equal(front->positions->weight, table));
  const auto copy = std::dynamic_pointer_cast<EmbeddingFrontImpl>(front->clone());
  EXPECT_FALSE(copy->positions->weight.requires_grad());
  EXPECT_TRUE(bit_equal(copy->forward(front_ids()), front->forward(front_ids())));
}

TEST(EmbeddingFront, TypesOfGpt2AreRowsOfTheTokens) {
  EmbeddingFront front(EmbeddingFrontOptions(9, 4).position_rows(6).types_from_tokens(true));
  const auto types = front_ids().flip(0);
  const auto without = front->forward(front_ids());
  EXPECT_TRUE(
      bit_equal(front->forward(front_ids(), with_types(types)), without + front->tokens(types)));
}

// Files from before transformers 4.31 hold buffers that can be computed.
TEST(EmbeddingFront, LoadsOldFilesWithTheirBuffers) {
  EmbeddingFront from(small_bert()), to(small_bert());
  StateDict file = state_dict(*from);
  file.insert("position_ids", torch::arange(6).unsqueeze(0));
  file.insert("token_type_ids", torch::zeros({1, 6}, torch::kLong));
  load_state_dict(*to, file);
  EXPECT_TRUE(bit_equal(to->forward(front_ids()), from->forward(front_ids())));
  file.insert("other", torch::ones({1}));
  EXPECT_THROW(load_state_dict(*to, file), WeightsError);
}

TEST(EmbeddingFront, DropsOnlyInTraining) {
  EmbeddingFront front(small_bert().dropout(0.5));
  EXPECT_TRUE((front->forward(front_ids()) == 0).any().item<bool>());
  front->eval();
  EXPECT_FALSE((front->forward(front_ids()) == 0).any().item<bool>());
}

TEST(EmbeddingFront, DropsAsItsDropoutModuleSays) {
  const auto zeros = [](EmbeddingFront& front) {
    return (front->forward(front_ids()) == 0).any().item<bool>();
  };
  EmbeddingFront front(small_bert().dropout(0.5));
  front->eval();
  front->dropout->train();  // Monte Carlo dropout
  EXPECT_TRUE(zeros(front));
  front->train();
  front->dropout->eval();
  EXPECT_FALSE(zeros(front));
}

TEST(EmbeddingFront, TokensThatDoNotFitAreRefusedWithTheNumberThatDoes) {
  const auto ones = [](int64_t length) { return torch::full({2, length}, 3); };
  EXPECT_NE(front_refusal(small_bert(), ones(7)).find("holds 6 tokens. Got 7"), std::string::npos);
  EXPECT_NE(front_refusal(small_bert(), ones(5), EmbeddingFrontInputs().offset(2))
                .find("holds 6 tokens. Got 5 after 2 others"),
            std::string::npos);
  EXPECT_NE(front_refusal(small_roberta(), ones(5)).find("holds 4 tokens. Got 5"),
            std::string::npos);
  EXPECT_NE(front_refusal(small_opt(), ones(7)).find("holds 6 tokens. Got 7"), std::string::npos);
  EXPECT_NE(front_refusal(small_opt(), ones(7), with_mask(torch::ones({2, 7})))
                .find("holds 6 tokens. Got 7"),
            std::string::npos);
  auto padded = ones(9);
  padded.slice(1, 4).fill_(1);  // padding takes no positions
  EmbeddingFront roberta(small_roberta());
  EXPECT_EQ(roberta->forward(padded).size(1), 9);
  EmbeddingFront nomic(small_bert().position_ids(PositionIds::None));
  EXPECT_EQ(nomic->max_tokens(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(nomic->forward(ones(30)).size(1), 30);
}

TEST(EmbeddingFront, NamesWhatLiesOutsideATable) {
  const auto ids = front_ids(), zeros = torch::zeros_like(ids);
  auto bad = ids.clone();
  bad[1][2] = 9;
  EXPECT_EQ(
      front_refusal(small_bert(), bad),
      "[EmbeddingFront] every id must lie in [0, vocab_size) = [0, 9). Got 9 at index [1, 2]");
  bad = zeros.clone();
  bad[0][1] = 2;
  EXPECT_EQ(front_refusal(small_bert(), ids, with_types(bad)),
            "[EmbeddingFront] every token type id must lie in [0, type_vocab_size) = [0, 2). Got 2 "
            "at index [0, 1]");
  EXPECT_EQ(front_refusal(small_bert(), ids, with_positions(torch::tensor({0, 6, 1}))),
            "[EmbeddingFront] every position id must lie in [0, the number of positions) = [0, 6). "
            "Got 6 at index [1]");
  EXPECT_EQ(front_refusal(small_opt(), ids, with_positions(torch::tensor({0, 6, -1}))),
            "[EmbeddingFront] every position id must lie in [0, the number of positions) = [0, 6). "
            "Got 6 at index [1]");
  bad[0][1] = 3;
  EXPECT_EQ(front_refusal(small_bert().task_type_vocab_size(3), ids,
                          EmbeddingFrontInputs().task_type_ids(bad)),
            "[EmbeddingFront] every task type id must lie in [0, task_type_vocab_size) = [0, 3). "
            "Got 3 at index [0, 1]");
}

}  // namespace
}  // namespace posenc
