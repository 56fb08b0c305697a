// Frozen models in 8 bits with a scale for each block of a row: nearer to float32, and otherwise
// what int8_test.cpp has of those with a scale a row. The arithmetic is tested against plain
// integers in tests/kernels/isa/int8_test.cpp.

#include <gtest/gtest.h>

#include "inference/linear/projection.h"
#include "inference/small_encoder.h"
#include "posenc/inference/freeze.h"
#include "support/compare.h"
#include "support/threads.h"

namespace posenc::testing {
namespace {

FreezeOptions int8(int64_t block) {
  return FreezeOptions().weights(WeightDtype::Int8).int8_block(block);
}

// Rows of the inputs and of the hidden layers have several blocks, the last of them shorter.
Encoder wide_encoder(int64_t width = 288, int64_t d_ff = 700, bool norm_first = false) {
  const auto layer = TransformerEncoderLayerOptions(width, 4).d_ff(d_ff).norm_first(norm_first);
  return small_encoder({EncoderEmbeddingsOptions(50, width).position_rows(40).type_vocab_size(2),
                        TransformerEncoderOptions(layer, 3)});
}

Transformer tied_transformer() {
  torch::manual_seed(testing::seed(21));
  Transformer model(TransformerOptions(40, 40).d_model(192).num_heads(4).d_ff(330).max_len(64).tie(
      Tying::ThreeWay));
  model->eval();
  return model;
}

// Outlier channels of the inputs of layers, which real encoders have, scaled back by the weights:
// with a scale a row they take the levels of all other channels.
TEST(FreezeInt8Block, IsNearerToFloat32) {
  const torch::NoGradGuard no_grad;
  for (unsigned seed = 0; seed < 3; ++seed) {
    const Encoder model = wide_encoder(512, 700, true);
    torch::manual_seed(testing::seed(30 + seed));
    const auto channel = torch::randint(0, 512, {1}, torch::kLong);
    for (auto& item : model->encoder->named_parameters()) {
      const auto has = [&](const char* name) { return item.key().find(name) != std::string::npos; };
      if (has("norm1.weight") || has("norm2.weight")) item.value().index_fill_(0, channel, 60.0);
      if (has("in_proj_weight") || has("linear1.weight"))
        item.value().index_copy_(1, channel, item.value().index_select(1, channel) / 60.0);
    }
    const auto ids = torch::randint(0, 50, {4, 21}, torch::kLong);
    const auto expected = freeze(model).forward(ids).last_hidden_state;
    const auto error = [&](int64_t block) {
      return distance(freeze(model, int8(block)).forward(ids).last_hidden_state, expected);
    };
    const double of_rows = error(0), of_128 = error(128), of_64 = error(64);
    EXPECT_LT(of_128, 0.7 * of_rows) << of_rows;
    EXPECT_LT(of_64, 0.9 * of_128) << of_128;
    EXPECT_GT(of_64, 1e-5) << "the weights are converted";
  }
}

// A row of one block has the bits that it has with a scale for the row.
TEST(FreezeInt8Block, ChangesNoBitOfNarrowLayers) {
  const torch::NoGradGuard no_grad;
  const Encoder model = wide_encoder(48, 64);
  const auto ids = torch::randint(0, 50, {3, 9}, torch::kLong);
  const auto expected = freeze(model, int8(0)).forward(ids).last_hidden_state;
  for (const int64_t block : {64, 128})
    EXPECT_TRUE(bit_equal(freeze(model, int8(block)).forward(ids).last_hidden_state, expected));
  const Encoder wider = wide_encoder(48, 65);
  EXPECT_FALSE(bit_equal(freeze(wider, int8(64)).forward(ids).last_hidden_state,
                         freeze(wider, int8(0)).forward(ids).last_hidden_state));
}

TEST(FreezeInt8Block, TheRestOfABatchAndTheThreadsChangeNoBit) {
  const torch::NoGradGuard no_grad;
  const Encoder model = wide_encoder();
  const auto ids = torch::randint(0, 50, {70, 7}, torch::kLong);
  for (const int64_t block : {64, 128}) {
    const auto frozen = freeze(model, int8(block));
    const auto all = frozen.forward(ids).last_hidden_state;
    for (const int64_t one : {0, 33, 69})
      EXPECT_TRUE(bit_equal(frozen.forward(ids.narrow(0, one, 1)).last_hidden_state,
                            all.narrow(0, one, 1)));
    for (const int threads : {1, 3}) {
      const Threads set(threads);
      EXPECT_TRUE(bit_equal(frozen.forward(ids).last_hidden_state, all));
    }
  }
}

// As the parts of many rows are, which threads share.
TEST(FreezeInt8Block, RowsAreReadFromAnyOnOne) {
  torch::manual_seed(testing::seed(22));
  const auto x = torch::randn({9, 200}), weight = torch::randn({30, 200});
  for (const int64_t block : {0, 64, 128}) {
    const inference::Projection projection(inference::Int8Weight(weight, block), {});
    const inference::RowFormat format = projection.row_format();
    auto buffer = torch::full({inference::ConvertedRows::floats(format, 9, 200)}, 7.0);
    const inference::ConvertedRows rows(format, buffer.data_ptr<float>(), 9, 200);
    rows.convert(x.const_data_ptr<float>(), 200, 9);
    const auto expected = projection.rows(x);
    for (const int64_t first : {0, 1, 4, 8}) {
      auto got = torch::empty({9 - first, 30});
      projection.run(rows.from(first), 9 - first, got.data_ptr<float>(), 30);
      EXPECT_TRUE(bit_equal(got, expected.narrow(0, first, 9 - first).contiguous())) << first;
    }
  }
}

TEST(FreezeInt8Block, TiedTablesAreConvertedOnceAndMultiplied) {
  const torch::NoGradGuard no_grad;
  const Transformer model = tied_transformer();
  const auto wide = freeze(model), rows = freeze(model, int8(0));
  const auto src = torch::randint(3, 40, {3, 11}, torch::kLong);
  const auto expected = wide.encode(src);
  const auto logits = wide.decode(src, expected, AttentionMask::causal());
  for (const int64_t block : {64, 128}) {
    const auto frozen = freeze(model, int8(block));
    EXPECT_LT(distance(frozen.encode(src), expected), 0.03);
    const auto got = frozen.decode(src, expected, AttentionMask::causal());
    EXPECT_LT(distance(got, logits), 0.03);
    // For each block but one, a unit and a sum of each row of a weight, in blocks of 16 rows.
    int64_t more = 0;
    for (const auto& weight : model->parameters())
      if (weight.dim() == 2)
        more += 8 * ((weight.size(0) + 15) / 16 * 16) * ((weight.size(1) + block - 1) / block - 1);
    EXPECT_EQ(frozen.bytes().own - rows.bytes().own, more);
  }
}

TEST(FreezeInt8Block, GenerateScoresWhatDecodeScores) {
  const torch::NoGradGuard no_grad;
  const auto frozen = freeze(tied_transformer(), int8(64));
  const auto src = torch::randint(3, 40, {2, 9}, torch::kLong);
  const auto options = GenerateOptions(kBegin, kEnd).max_new_tokens(8).length_penalty(0.0);
  const auto found = generate(frozen, src, {}, options);
  for (int64_t b = 0; b < 2; ++b) {
    const auto& tokens = found[b][0].tokens;
    std::vector<int64_t> given = {kBegin};
    given.insert(given.end(), tokens.begin(), tokens.end());
    given.pop_back();
    const auto tgt = torch::tensor(given).unsqueeze(0);
    const auto scores =
        frozen.decode(tgt, frozen.encode(src.narrow(0, b, 1)), AttentionMask::causal())
            .log_softmax(-1)[0];
    double score = 0.0;
    for (size_t i = 0; i < tokens.size(); ++i)
      score += scores[static_cast<int64_t>(i)][tokens[i]].item<double>();
    EXPECT_NEAR(found[b][0].score, score, 0.02 * (1.0 + std::abs(score)));
  }
}

TEST(FreezeInt8Block, ExceptionsStayInFloat32) {
  const torch::NoGradGuard no_grad;
  const Encoder model = wide_encoder();
  const auto ids = torch::randint(0, 50, {5, 9}, torch::kLong);
  const auto expected = freeze(model).forward(ids).last_hidden_state;
  const auto none = freeze(model, int8(64).weights_to_not_convert({"*"}));
  EXPECT_TRUE(bit_equal(none.forward(ids).last_hidden_state, expected));
  for (const char* const name : {"*in_proj_weight", "*linear1*", "*linear2*"}) {
    const auto some = freeze(model, int8(64).weights_to_not_convert({name}));
    EXPECT_LT(distance(some.forward(ids).last_hidden_state, expected), 0.03) << name;
  }
}

TEST(FreezeInt8Block, InputsThatAreNotFiniteStayInTheirSequence) {
  const torch::NoGradGuard no_grad;
  const auto frozen = freeze(wide_encoder(), int8(64));
  const auto embeds = torch::randn({3, 7, 288});
  const auto expected =
      frozen.forward({}, EncoderInputs().inputs_embeds(embeds.clone())).last_hidden_state;
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    embeds[1][4][200] = value;
    const auto got = frozen.forward({}, EncoderInputs().inputs_embeds(embeds)).last_hidden_state;
    EXPECT_TRUE(got[1].isnan().all().item<bool>());
    for (const int64_t other : {0, 2})
      EXPECT_TRUE(bit_equal(got[other].contiguous(), expected[other].contiguous()));
  }
}

// The sum of a block fits in 32 bits however long the row is.
TEST(FreezeInt8Block, RowsMayBeLong) {
  const torch::NoGradGuard no_grad;
  const auto layer = TransformerEncoderLayerOptions(2, 1).d_ff(140000);
  TransformerEncoder model(TransformerEncoderOptions(layer, 1));
  model->eval();
  EXPECT_THROW(freeze(model, int8(0)), c10::ValueError);
  const auto x = torch::randn({1, 3, 2});
  EXPECT_LT(distance(freeze(model, int8(128)).forward(x), freeze(model).forward(x)), 0.03);
}

TEST(FreezeInt8Block, IsPrinted) {
  const auto frozen = freeze(small_encoder(), int8(64));
  EXPECT_NE(printed(frozen).find(", weights=int8, int8_block=64 (13 of 13))"), std::string::npos)
      << frozen;
}

TEST(FreezeInt8Block, OtherNumbersAndWeightsAreErrors) {
  const Encoder model = small_encoder();
  for (const int64_t block : {-64, 1, 16, 32, 63, 65, 256}) {
    const auto message = message_of([&] { freeze(model, int8(block)); });
    EXPECT_NE(message.find("[freeze] int8_block must be 64 or 128, or 0 for a scale a row. Got " +
                           std::to_string(block)),
              std::string::npos)
        << message;
  }
  for (const auto& [dtype, name] :
       {std::pair{WeightDtype::Float32, "float32"}, std::pair{WeightDtype::BFloat16, "bfloat16"}}) {
    const auto message = message_of([&, dtype = dtype] { freeze(model, int8(64).weights(dtype)); });
    EXPECT_NE(message.find("[freeze] int8_block must be 0 unless the weights are int8. Got 64 and "
                           "weights in " +
                           std::string(name)),
              std::string::npos)
        << message;
  }
}

TEST(FreezeInt8Block, ChangesOfTheSourceAreSeen) { expect_changes_are_seen(int8(64)); }

}  // namespace
}  // namespace posenc::testing
