#include <gtest/gtest.h>
#include <torch/utils.h>

#include "posenc/positions/nn/encoder_embeddings.h"
#include "support/compare.h"

namespace posenc {
namespace {

using embeddings::Norm;
using embeddings::PositionIds;
using embeddings::Projection;
using testing::message_of;

EncoderEmbeddingsOptions plain_embeddings() {
  return EncoderEmbeddingsOptions(9, 4).position_rows(6);
}

// An option set that is refused, and a part of the message.
struct RefusedEmbeddings {
  EncoderEmbeddingsOptions options;
  const char* message;
};

TEST(EncoderEmbeddingsErrors, OptionsThatContradictEachOther) {
  const RefusedEmbeddings cases[] = {
      {EncoderEmbeddingsOptions(0, 4), "vocab_size must be positive. Got 0"},
      {EncoderEmbeddingsOptions(9, -1), "d_model must be positive. Got -1"},
      {plain_embeddings().embedding_dim(0), "embedding_dim must be positive. Got 0"},
      {plain_embeddings().embedding_dim(3), "must be d_model 4 without a projection. Got 3"},
      {plain_embeddings().position_rows(0), "position_rows must be positive. Got 0"},
      {plain_embeddings().position_offset(-1), "must not be negative. Got -1 and 0"},
      {plain_embeddings().first_position(6), "must exceed the first position's row 6. Got 6"},
      {plain_embeddings().position_ids(PositionIds::FromIds), "needs a padding_idx"},
      {plain_embeddings().position_ids(PositionIds::FromIds).padding_idx(5), "row 6. Got 6"},
      {plain_embeddings().position_ids(PositionIds::FromIds).padding_idx(-1),
       "padding_idx must not be negative with PositionIds::FromIds, which compares ids with it. "
       "Got -1"},
      {plain_embeddings().position_ids(PositionIds::FromIds).padding_idx(1).position_offset(2),
       "counts from padding_idx alone. Got position_offset 2"},
      {plain_embeddings().position_ids(PositionIds::FromMask),
       "a position_offset of at least 1. Got 0"},
      {plain_embeddings().position_ids(PositionIds::None).position_offset(2),
       "Got PositionIds::None"},
      {plain_embeddings().position_ids(PositionIds::None).sinusoid(SinusoidOptions(4)),
       "Got PositionIds::None"},
      {plain_embeddings().sinusoid(SinusoidOptions(6)), "the sinusoid's dim must be 4. Got 6"},
      {plain_embeddings().sinusoid(SinusoidOptions(4)).position_padding_idx(0),
       "it has no position_padding_idx. Got 0"},
      {plain_embeddings().padding_idx(9), "padding_idx must lie in [-9, 9). Got 9"},
      {plain_embeddings().position_padding_idx(-7),
       "position_padding_idx must lie in [-6, 6). Got -7"},
      {plain_embeddings().type_padding_idx(0),
       "needs a table of token types. Got type_vocab_size 0"},
      {plain_embeddings().type_vocab_size(2).type_padding_idx(2), "must lie in [-2, 2). Got 2"},
      {plain_embeddings().type_vocab_size(-1), "must not be negative. Got -1 and 0"},
      {plain_embeddings().type_vocab_size(2).types_from_tokens(true), "Got type_vocab_size 2"},
      {plain_embeddings().types_from_tokens(true).projection(Projection::Tokens),
       "types_from_tokens and Projection::Tokens exclude each other"},
      {plain_embeddings().layer_norm_eps(-1.0), "layer_norm_eps must not be negative. Got -1"},
      {plain_embeddings().dropout(1.0), "dropout must lie in [0, 1). Got 1"},
  };
  for (const auto& [options, message] : cases) {
    const std::string got = message_of([&, how = options] { EncoderEmbeddings embeddings(how); });
    EXPECT_NE(got.find("[EncoderEmbeddings] "), std::string::npos) << got;
    EXPECT_NE(got.find(message), std::string::npos) << got << "\nlacks " << message;
  }
}

TEST(EncoderEmbeddingsErrors, InputsThatTheOptionsHaveNoUseFor) {
  const auto ids = torch::tensor({{3, 1, 5}, {2, 8, 1}});
  const auto rows = torch::zeros({2, 3}, torch::kLong);
  const auto refusal = [&](const EncoderEmbeddingsOptions& options,
                           const EncoderEmbeddingsInputs& inputs) {
    EncoderEmbeddings embeddings(options);
    return message_of([&] { embeddings->forward(ids, inputs); });
  };
  using Inputs = EncoderEmbeddingsInputs;
  const auto none = plain_embeddings().position_ids(PositionIds::None);
  const auto roberta = plain_embeddings().position_ids(PositionIds::FromIds).padding_idx(1);
  const auto opt = plain_embeddings().position_ids(PositionIds::FromMask).position_offset(2);
  EXPECT_EQ(refusal(plain_embeddings(), Inputs().token_type_ids(rows)),
            "[EncoderEmbeddings] these embeddings have no token types. Got token_type_ids [2, 3]");
  EXPECT_EQ(refusal(plain_embeddings(), Inputs().task_type_ids(rows)),
            "[EncoderEmbeddings] these embeddings have no task types. Got task_type_ids [2, 3]");
  EXPECT_EQ(refusal(none, Inputs().position_ids(rows)),
            "[EncoderEmbeddings] these embeddings have no positions. Got position_ids [2, 3]");
  EXPECT_EQ(refusal(plain_embeddings(), Inputs().position_ids(rows).offset(1)),
            "[EncoderEmbeddings] an offset and position_ids exclude each other. Got 1");
  EXPECT_EQ(
      refusal(roberta, Inputs().offset(1)),
      "[EncoderEmbeddings] an offset and position ids from the ids exclude each other. Got 1");
  EXPECT_EQ(refusal(plain_embeddings(), Inputs().offset(-1)),
            "[EncoderEmbeddings] offset must not be negative. Got -1");
  EXPECT_EQ(
      refusal(opt, Inputs().attention_mask(torch::ones({3, 2}))),
      "[EncoderEmbeddings] attention_mask must be [2, 3], the ids after 0 tokens. Got [3, 2]");
  EXPECT_EQ(refusal(opt, Inputs().attention_mask(torch::ones({2, 3}, torch::kComplexFloat))),
            "[EncoderEmbeddings] attention_mask must be boolean or numbers. Got ComplexFloat");
  // Tensors as tokenizers return them are accepted everywhere.
  for (const auto& options : {plain_embeddings(), none, roberta})
    EXPECT_EQ(refusal(options, Inputs().attention_mask(torch::ones({2, 3}))), "");
}

TEST(EncoderEmbeddingsErrors, IdsThatAreNone) {
  EncoderEmbeddings embeddings(plain_embeddings());
  EXPECT_EQ(message_of([&] { embeddings->forward(torch::Tensor()); }),
            "[EncoderEmbeddings] ids must be (B, L) or (L). Got no tensor");
  EXPECT_EQ(message_of([&] { embeddings->forward(torch::zeros({1, 2, 3}, torch::kLong)); }),
            "[EncoderEmbeddings] ids must be (B, L) or (L). Got [1, 2, 3]");
  EXPECT_EQ(message_of([&] { embeddings->forward(torch::zeros({2, 3})); }),
            "[EncoderEmbeddings] ids must be integers. Got Float");
}

}  // namespace
}  // namespace posenc
