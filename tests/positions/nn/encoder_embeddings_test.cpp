#include "posenc/positions/nn/encoder_embeddings.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/embedding.h>
#include <torch/nn/functional/normalization.h>
#include <torch/utils.h>

#include <limits>

#include "posenc/positions/sinusoid/table.h"
#include "posenc/weights/error.h"
#include "posenc/weights/load.h"
#include "posenc/weights/state_dict.h"
#include "support/compare.h"
#include "support/seed.h"

namespace posenc {
namespace {

namespace TF = torch::nn::functional;
using embeddings::Norm;
using embeddings::PositionIds;
using testing::bit_equal;
using testing::message_of;

// BERT with 9 tokens, 6 positions and 2 types.
EncoderEmbeddingsOptions small_bert() {
  return EncoderEmbeddingsOptions(9, 4).position_rows(6).type_vocab_size(2).norm(Norm::AfterSum);
}
EncoderEmbeddingsOptions small_roberta() {
  return small_bert().padding_idx(1).position_padding_idx(1).position_ids(PositionIds::FromIds);
}
EncoderEmbeddingsOptions small_opt() {
  return EncoderEmbeddingsOptions(9, 4).position_rows(8).position_offset(2).position_ids(
      PositionIds::FromMask);
}
torch::Tensor embeddings_ids() { return torch::tensor({{3, 1, 5}, {2, 8, 1}}); }
std::string embeddings_refusal(const EncoderEmbeddingsOptions& options, const torch::Tensor& ids,
                               const EncoderEmbeddingsInputs& inputs = {}) {
  EncoderEmbeddings embeddings(options);
  return message_of([&] { embeddings->forward(ids, inputs); });
}
EncoderEmbeddingsInputs with_types(const torch::Tensor& types) {
  return EncoderEmbeddingsInputs().token_type_ids(types);
}
EncoderEmbeddingsInputs with_positions(const torch::Tensor& positions) {
  return EncoderEmbeddingsInputs().position_ids(positions);
}
EncoderEmbeddingsInputs with_mask(const torch::Tensor& mask) {
  return EncoderEmbeddingsInputs().attention_mask(mask);
}

TEST(EncoderEmbeddings, IsTheSumOfItsTablesInTheGivenOrder) {
  torch::manual_seed(testing::seed(0));
  EncoderEmbeddings embeddings(small_bert());
  const auto types = torch::tensor({{0, 1, 1}, {1, 0, 0}});
  const auto sum = embeddings->tokens(embeddings_ids()) + embeddings->token_types(types) +
                   embeddings->positions->weight.slice(0, 0, 3).unsqueeze(0);
  const auto expected = TF::layer_norm(sum, TF::LayerNormFuncOptions({4})
                                                .weight(embeddings->norm->weight)
                                                .bias(embeddings->norm->bias)
                                                .eps(1e-12));
  EXPECT_TRUE(bit_equal(embeddings->forward(embeddings_ids(), with_types(types)), expected));
  EXPECT_TRUE(
      bit_equal(embeddings->forward(embeddings_ids()[0], with_types(types[0])), expected[0]));
}

TEST(EncoderEmbeddings, InitialWeightsAreThoseOfPyTorchsModules) {
  torch::manual_seed(testing::seed(1));
  EncoderEmbeddings embeddings(small_bert().padding_idx(-2).position_padding_idx(3));
  torch::manual_seed(testing::seed(1));
  const torch::nn::Embedding tokens(torch::nn::EmbeddingOptions(9, 4).padding_idx(7));
  const torch::nn::Embedding positions(torch::nn::EmbeddingOptions(6, 4).padding_idx(3));
  const torch::nn::Embedding types(2, 4);
  EXPECT_TRUE(bit_equal(embeddings->tokens->weight, tokens->weight));
  EXPECT_TRUE(bit_equal(embeddings->positions->weight, positions->weight));
  EXPECT_TRUE(bit_equal(embeddings->token_types->weight, types->weight));
  embeddings->forward(embeddings_ids()).sum().backward();
  EXPECT_TRUE(bit_equal(embeddings->tokens->weight.grad()[7], torch::zeros({4})));
}

TEST(EncoderEmbeddings, NumbersTokensAsRoberta) {
  EncoderEmbeddings embeddings(small_roberta().norm(Norm::None));
  const auto rows = torch::tensor({{2, 1, 3}, {2, 3, 1}});
  const auto expected = embeddings->tokens(embeddings_ids()) + embeddings->token_types->weight[0] +
                        embeddings->positions->forward(rows);
  EXPECT_TRUE(bit_equal(embeddings->forward(embeddings_ids()), expected));
  EXPECT_EQ(embeddings->max_tokens(), 4);
}

TEST(EncoderEmbeddings, HoldsAsManyTokensAsItsTableHasRows) {
  EncoderEmbeddings embeddings(EncoderEmbeddingsOptions(9, 4).position_rows(10));
  embeddings->positions->resize(2, 4, PositionResize::Bicubic, 1);
  EncoderEmbeddings copy(std::dynamic_pointer_cast<EncoderEmbeddingsImpl>(embeddings->clone()));
  for (auto* one : {&embeddings, &copy}) {
    EXPECT_EQ((*one)->max_tokens(), 9);
    EXPECT_EQ((*one)->forward(torch::zeros({1, 9}, torch::kLong)).size(1), 9);
    EXPECT_ERROR((*one)->forward(torch::zeros({1, 10}, torch::kLong)), c10::IndexError,
                 "holds 9 tokens. Got 10");
  }
}

TEST(EncoderEmbeddings, NumbersTokensByTheMaskAsOpt) {
  EncoderEmbeddings embeddings(small_opt());
  const auto expected = [&](const torch::Tensor& rows) {
    return embeddings->tokens(embeddings_ids()) + embeddings->positions->weight.index({rows});
  };
  const auto rows = torch::tensor({{1, 2, 3}, {2, 1, 3}});
  const auto mask = torch::tensor({{0, 1, 1}, {1, 0, 1}});
  for (const auto dtype : {torch::kLong, torch::kInt, torch::kUInt8, torch::kBool, torch::kFloat})
    EXPECT_TRUE(bit_equal(embeddings->forward(embeddings_ids(), with_mask(mask.to(dtype))),
                          expected(rows)));
  EXPECT_TRUE(bit_equal(embeddings->forward(embeddings_ids()), expected(torch::arange(2, 5))));
  const auto longer = torch::tensor({{1, 1, 0, 1, 1}, {1, 0, 1, 0, 1}});  // after two tokens
  EXPECT_TRUE(bit_equal(embeddings->forward(embeddings_ids(), with_mask(longer).offset(2)),
                        expected(torch::tensor({{1, 4, 5}, {3, 1, 4}}))));
}

TEST(EncoderEmbeddings, OffsetsAreAddedToGivenPositionsAndFirstPositionsAreNot) {
  const auto given = torch::tensor({1, 0, 3});
  const auto base = EncoderEmbeddingsOptions(9, 4).position_rows(8);
  EncoderEmbeddings bart(EncoderEmbeddingsOptions(base).position_offset(2));
  EncoderEmbeddings nystromformer(EncoderEmbeddingsOptions(base).first_position(2));
  const auto added = [&](EncoderEmbeddings& embeddings, const EncoderEmbeddingsInputs& inputs) {
    return embeddings->forward(embeddings_ids(), inputs) - embeddings->tokens(embeddings_ids());
  };
  const auto near = [](const torch::Tensor& got, const torch::Tensor& row) {
    return torch::allclose(got, row.expand_as(got), 1e-5, 1e-6);
  };
  EXPECT_TRUE(near(added(bart, with_positions(given)), bart->positions->weight.index({given + 2})));
  EXPECT_TRUE(near(added(nystromformer, with_positions(given.unsqueeze(0))),
                   nystromformer->positions->weight.index({given})));
  for (auto* embeddings : {&bart, &nystromformer})
    EXPECT_TRUE(near(added(*embeddings, EncoderEmbeddingsInputs().offset(1)),
                     (*embeddings)->positions->weight.slice(0, 3, 6)));
  EXPECT_EQ(bart->max_tokens(), 6);
  EXPECT_EQ(nystromformer->max_tokens(), 6);
}

// Autograd sums in the order of transformers: over the batch first, or row by row.
TEST(EncoderEmbeddings, ExpandedPositionsAreSummedOneByOne) {
  torch::manual_seed(testing::seed(2));
  const auto ids = torch::randint(9, {300, 5});
  const auto grad_of = [&](PositionIds rule) {
    EncoderEmbeddings embeddings(
        EncoderEmbeddingsOptions(9, 4).position_rows(6).position_ids(rule));
    torch::manual_seed(testing::seed(3));
    const auto cotangent = torch::randn({300, 5, 4});
    (embeddings->forward(ids) * cotangent).sum().backward();
    auto one_by_one = torch::zeros({5, 4});
    for (int64_t i = 0; i < 300; ++i) one_by_one = one_by_one + cotangent[i];
    const auto whole = rule == PositionIds::Arange ? cotangent.sum(0) : one_by_one;
    return bit_equal(embeddings->positions->weight.grad().slice(0, 0, 5), whole);
  };
  EXPECT_TRUE(grad_of(PositionIds::Arange));
  EXPECT_TRUE(grad_of(PositionIds::ArangeExpanded));
}

TEST(EncoderEmbeddings, ASinusoidIsFrozenAndDrawsNothing) {
  const auto options = EncoderEmbeddingsOptions(9, 4).position_rows(6).sinusoid(SinusoidOptions(4));
  torch::manual_seed(testing::seed(4));
  EncoderEmbeddings embeddings(options);
  const auto next = torch::rand({2});
  torch::manual_seed(testing::seed(4));
  const torch::nn::Embedding tokens(9, 4);
  EXPECT_TRUE(bit_equal(next, torch::rand({2})));
  const auto table = sinusoid_table(SinusoidOptions(4), 6);
  EXPECT_TRUE(bit_equal(embeddings->positions->weight, table));
  EXPECT_FALSE(embeddings->positions->weight.requires_grad());
  embeddings->reset_parameters();
  EXPECT_TRUE(bit_equal(embeddings->positions->weight, table));
  const auto copy = std::dynamic_pointer_cast<EncoderEmbeddingsImpl>(embeddings->clone());
  EXPECT_FALSE(copy->positions->weight.requires_grad());
  EXPECT_TRUE(bit_equal(copy->forward(embeddings_ids()), embeddings->forward(embeddings_ids())));
}

TEST(EncoderEmbeddings, TypesOfGpt2AreRowsOfTheTokens) {
  EncoderEmbeddings embeddings(
      EncoderEmbeddingsOptions(9, 4).position_rows(6).types_from_tokens(true));
  const auto types = embeddings_ids().flip(0);
  const auto without = embeddings->forward(embeddings_ids());
  EXPECT_TRUE(bit_equal(embeddings->forward(embeddings_ids(), with_types(types)),
                        without + embeddings->tokens(types)));
}

// Files from before transformers 4.31 hold buffers that can be computed.
TEST(EncoderEmbeddings, LoadsOldFilesWithTheirBuffers) {
  EncoderEmbeddings from(small_bert()), to(small_bert());
  StateDict file = state_dict(*from);
  file.insert("position_ids", torch::arange(6).unsqueeze(0));
  file.insert("token_type_ids", torch::zeros({1, 6}, torch::kLong));
  load_state_dict(*to, file);
  EXPECT_TRUE(bit_equal(to->forward(embeddings_ids()), from->forward(embeddings_ids())));
  file.insert("other", torch::ones({1}));
  EXPECT_THROW(load_state_dict(*to, file), WeightsError);
}

// Without boxes theirs are zeros, and sides of up to 1023 do not fit narrow ids.
TEST(EncoderEmbeddings, TakesNarrowIdsWithTablesOfBoxes) {
  for (const bool side_by_side : {false, true}) {
    auto options = small_bert().box_positions(20);
    if (side_by_side) options = EncoderEmbeddingsOptions(9, 6).position_rows(6).box_positions(20);
    if (side_by_side) options.coordinate_size(1).shape_size(1);
    EncoderEmbeddings embeddings(options);
    const torch::Tensor expected = embeddings->forward(embeddings_ids());
    for (const auto type : {torch::kByte, torch::kChar, torch::kShort, torch::kInt})
      EXPECT_TRUE(bit_equal(embeddings->forward(embeddings_ids().to(type)), expected)) << type;
  }
}

TEST(EncoderEmbeddings, DropsOnlyInTraining) {
  EncoderEmbeddings embeddings(small_bert().dropout(0.5));
  EXPECT_TRUE((embeddings->forward(embeddings_ids()) == 0).any().item<bool>());
  embeddings->eval();
  EXPECT_FALSE((embeddings->forward(embeddings_ids()) == 0).any().item<bool>());
}

TEST(EncoderEmbeddings, DropsAsItsDropoutModuleSays) {
  const auto zeros = [](EncoderEmbeddings& embeddings) {
    return (embeddings->forward(embeddings_ids()) == 0).any().item<bool>();
  };
  EncoderEmbeddings embeddings(small_bert().dropout(0.5));
  embeddings->eval();
  embeddings->dropout->train();  // Monte Carlo dropout
  EXPECT_TRUE(zeros(embeddings));
  embeddings->train();
  embeddings->dropout->eval();
  EXPECT_FALSE(zeros(embeddings));
}

TEST(EncoderEmbeddings, TokensThatDoNotFitAreRefusedWithTheNumberThatDoes) {
  const auto ones = [](int64_t length) { return torch::full({2, length}, 3); };
  EXPECT_NE(embeddings_refusal(small_bert(), ones(7)).find("holds 6 tokens. Got 7"),
            std::string::npos);
  EXPECT_NE(embeddings_refusal(small_bert(), ones(5), EncoderEmbeddingsInputs().offset(2))
                .find("holds 6 tokens. Got 5 after 2 others"),
            std::string::npos);
  EXPECT_NE(embeddings_refusal(small_roberta(), ones(5)).find("holds 4 tokens. Got 5"),
            std::string::npos);
  EXPECT_NE(embeddings_refusal(small_opt(), ones(7)).find("holds 6 tokens. Got 7"),
            std::string::npos);
  EXPECT_NE(embeddings_refusal(small_opt(), ones(7), with_mask(torch::ones({2, 7})))
                .find("holds 6 tokens. Got 7"),
            std::string::npos);
  auto padded = ones(9);
  padded.slice(1, 4).fill_(1);  // padding takes no positions
  EncoderEmbeddings roberta(small_roberta());
  EXPECT_EQ(roberta->forward(padded).size(1), 9);
  EncoderEmbeddings nomic(small_bert().position_ids(PositionIds::None));
  EXPECT_EQ(nomic->max_tokens(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(nomic->forward(ones(30)).size(1), 30);
}

TEST(EncoderEmbeddings, NamesWhatLiesOutsideATable) {
  const auto ids = embeddings_ids(), zeros = torch::zeros_like(ids);
  auto bad = ids.clone();
  bad[1][2] = 9;
  EXPECT_EQ(
      embeddings_refusal(small_bert(), bad),
      "[EncoderEmbeddings] every id must lie in [0, vocab_size) = [0, 9). Got 9 at index [1, 2]");
  bad = zeros.clone();
  bad[0][1] = 2;
  EXPECT_EQ(
      embeddings_refusal(small_bert(), ids, with_types(bad)),
      "[EncoderEmbeddings] every token type id must lie in [0, type_vocab_size) = [0, 2). Got 2 "
      "at index [0, 1]");
  EXPECT_EQ(
      embeddings_refusal(small_bert(), ids, with_positions(torch::tensor({0, 6, 1}))),
      "[EncoderEmbeddings] every position id must lie in [0, the number of positions) = [0, 6). "
      "Got 6 at index [1]");
  EXPECT_EQ(
      embeddings_refusal(small_opt(), ids, with_positions(torch::tensor({0, 6, -1}))),
      "[EncoderEmbeddings] every position id must lie in [0, the number of positions) = [0, 6). "
      "Got 6 at index [1]");
  bad[0][1] = 3;
  EXPECT_EQ(
      embeddings_refusal(small_bert().task_type_vocab_size(3), ids,
                         EncoderEmbeddingsInputs().task_type_ids(bad)),
      "[EncoderEmbeddings] every task type id must lie in [0, task_type_vocab_size) = [0, 3). "
      "Got 3 at index [0, 1]");
}

}  // namespace
}  // namespace posenc
