#include <gtest/gtest.h>
#include <torch/utils.h>

#include "posenc/nn/embedding_front.h"
#include "support/compare.h"

namespace posenc {
namespace {

using front::Norm;
using front::PositionIds;
using front::Projection;
using testing::message_of;

EmbeddingFrontOptions plain_front() { return EmbeddingFrontOptions(9, 4).position_rows(6); }

// An option set that is refused, and a part of the message.
struct RefusedFront {
  EmbeddingFrontOptions options;
  const char* message;
};

TEST(EmbeddingFrontErrors, OptionsThatContradictEachOther) {
  const RefusedFront cases[] = {
      {EmbeddingFrontOptions(0, 4), "vocab_size must be positive. Got 0"},
      {EmbeddingFrontOptions(9, -1), "d_model must be positive. Got -1"},
      {plain_front().embedding_dim(0), "embedding_dim must be positive. Got 0"},
      {plain_front().embedding_dim(3), "must be d_model 4 without a projection. Got 3"},
      {plain_front().position_rows(0), "position_rows must be positive. Got 0"},
      {plain_front().position_offset(-1), "must not be negative. Got -1 and 0"},
      {plain_front().first_position(6), "must exceed the first position's row 6. Got 6"},
      {plain_front().position_ids(PositionIds::FromIds), "needs a padding_idx"},
      {plain_front().position_ids(PositionIds::FromIds).padding_idx(5), "row 6. Got 6"},
      {plain_front().position_ids(PositionIds::FromIds).padding_idx(-1),
       "padding_idx must not be negative with PositionIds::FromIds, which compares ids with it. "
       "Got -1"},
      {plain_front().position_ids(PositionIds::FromIds).padding_idx(1).position_offset(2),
       "counts from padding_idx alone. Got position_offset 2"},
      {plain_front().position_ids(PositionIds::FromMask), "a position_offset of at least 1. Got 0"},
      {plain_front().position_ids(PositionIds::None).position_offset(2), "Got PositionIds::None"},
      {plain_front().position_ids(PositionIds::None).sinusoid(SinusoidOptions(4)),
       "Got PositionIds::None"},
      {plain_front().sinusoid(SinusoidOptions(6)), "the sinusoid's dim must be 4. Got 6"},
      {plain_front().sinusoid(SinusoidOptions(4)).position_padding_idx(0),
       "it has no position_padding_idx. Got 0"},
      {plain_front().padding_idx(9), "padding_idx must lie in [-9, 9). Got 9"},
      {plain_front().position_padding_idx(-7), "position_padding_idx must lie in [-6, 6). Got -7"},
      {plain_front().type_padding_idx(0), "needs a table of token types. Got type_vocab_size 0"},
      {plain_front().type_vocab_size(2).type_padding_idx(2), "must lie in [-2, 2). Got 2"},
      {plain_front().type_vocab_size(-1), "must not be negative. Got -1 and 0"},
      {plain_front().type_vocab_size(2).types_from_tokens(true), "Got type_vocab_size 2"},
      {plain_front().types_from_tokens(true).projection(Projection::Tokens),
       "types_from_tokens and Projection::Tokens exclude each other"},
      {plain_front().layer_norm_eps(-1.0), "layer_norm_eps must not be negative. Got -1"},
      {plain_front().dropout(1.0), "dropout must lie in [0, 1). Got 1"},
  };
  for (const auto& [options, message] : cases) {
    const std::string got = message_of([&, how = options] { EmbeddingFront front(how); });
    EXPECT_NE(got.find("[EmbeddingFront] "), std::string::npos) << got;
    EXPECT_NE(got.find(message), std::string::npos) << got << "\nlacks " << message;
  }
}

TEST(EmbeddingFrontErrors, InputsThatTheOptionsHaveNoUseFor) {
  const auto ids = torch::tensor({{3, 1, 5}, {2, 8, 1}});
  const auto rows = torch::zeros({2, 3}, torch::kLong);
  const auto refusal = [&](const EmbeddingFrontOptions& options,
                           const EmbeddingFrontInputs& inputs) {
    EmbeddingFront front(options);
    return message_of([&] { front->forward(ids, inputs); });
  };
  using Inputs = EmbeddingFrontInputs;
  const auto none = plain_front().position_ids(PositionIds::None);
  const auto roberta = plain_front().position_ids(PositionIds::FromIds).padding_idx(1);
  const auto opt = plain_front().position_ids(PositionIds::FromMask).position_offset(2);
  EXPECT_EQ(refusal(plain_front(), Inputs().token_type_ids(rows)),
            "[EmbeddingFront] this front has no token types. Got token_type_ids [2, 3]");
  EXPECT_EQ(refusal(plain_front(), Inputs().task_type_ids(rows)),
            "[EmbeddingFront] this front has no task types. Got task_type_ids [2, 3]");
  EXPECT_EQ(refusal(none, Inputs().position_ids(rows)),
            "[EmbeddingFront] this front has no positions. Got position_ids [2, 3]");
  EXPECT_EQ(refusal(plain_front(), Inputs().position_ids(rows).offset(1)),
            "[EmbeddingFront] an offset and position_ids exclude each other. Got 1");
  EXPECT_EQ(refusal(roberta, Inputs().offset(1)),
            "[EmbeddingFront] an offset and position ids from the ids exclude each other. Got 1");
  EXPECT_EQ(refusal(plain_front(), Inputs().offset(-1)),
            "[EmbeddingFront] offset must not be negative. Got -1");
  EXPECT_EQ(refusal(opt, Inputs().attention_mask(torch::ones({3, 2}))),
            "[EmbeddingFront] attention_mask must be [2, 3], the ids after 0 tokens. Got [3, 2]");
  EXPECT_EQ(refusal(opt, Inputs().attention_mask(torch::ones({2, 3}, torch::kComplexFloat))),
            "[EmbeddingFront] attention_mask must be boolean or numbers. Got ComplexFloat");
  // Tensors as tokenizers return them are accepted everywhere.
  for (const auto& options : {plain_front(), none, roberta})
    EXPECT_EQ(refusal(options, Inputs().attention_mask(torch::ones({2, 3}))), "");
}

TEST(EmbeddingFrontErrors, IdsThatAreNone) {
  EmbeddingFront front(plain_front());
  EXPECT_EQ(message_of([&] { front->forward(torch::Tensor()); }),
            "[EmbeddingFront] ids must be (B, L) or (L). Got no tensor");
  EXPECT_EQ(message_of([&] { front->forward(torch::zeros({1, 2, 3}, torch::kLong)); }),
            "[EmbeddingFront] ids must be (B, L) or (L). Got [1, 2, 3]");
  EXPECT_EQ(message_of([&] { front->forward(torch::zeros({2, 3})); }),
            "[EmbeddingFront] ids must be integers. Got Float");
}

}  // namespace
}  // namespace posenc
