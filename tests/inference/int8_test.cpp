// Frozen models in 8 bits: how far they are from float32, that a row's result depends on nothing
// but the row, which weights are converted, and what memory is freed. The arithmetic is tested
// against plain integers in tests/kernels/isa/int8_test.cpp.

#include <gtest/gtest.h>

#include <limits>

#include "inference/small_encoder.h"
#include "posenc/inference/freeze.h"
#include "posenc/models/frozen_classifier.h"
#include "support/compare.h"
#include "support/threads.h"

namespace posenc::testing {
namespace {

FreezeOptions int8() { return FreezeOptions().weights(WeightDtype::Int8); }

TEST(FreezeInt8, IsNearFloat32) {
  const torch::NoGradGuard no_grad;
  Dice dice(1);
  for (unsigned seed = 0; seed < 40; ++seed) {
    auto model = any_model(dice, seed);
    if (model->options.d_model() < 16) continue;  // a norm of few numbers magnifies differences
    const auto wide = freeze(model), narrow = freeze(model, int8());
    SCOPED_TRACE(printed(narrow));
    const auto src = any_ids(dice, dice(1, 9), dice(2, 30), dice.coin());
    const auto mask = AttentionMask::padding(src, kPad);
    const auto memory = wide.encode(src, mask);
    const double encoded = distance(narrow.encode(src, mask), memory);
    EXPECT_GT(encoded, 1e-5) << "the weights are converted";
    EXPECT_LT(encoded, 0.12);
    const auto causal = AttentionMask::causal();
    const double decoded =
        distance(narrow.decode(src, memory, causal, mask), wide.decode(src, memory, causal, mask));
    EXPECT_GT(decoded, 1e-5);
    EXPECT_LT(decoded, 0.12);
  }
}

TEST(FreezeInt8, TheRestOfABatchAndTheThreadsChangeNoBit) {
  const torch::NoGradGuard no_grad;
  Dice dice(2);
  for (unsigned seed = 0; seed < 10; ++seed) {
    auto model = any_model(dice, seed);
    const auto frozen = freeze(model, int8());
    const auto src = any_ids(dice, 7, 23, seed % 2 == 0);
    const auto mask = AttentionMask::padding(src, kPad);
    const auto all = frozen.encode(src, mask);
    const auto logits = frozen.decode(src, all, AttentionMask::causal(), mask);
    for (const int64_t one : {0, 4}) {
      const auto alone = src.narrow(0, one, 1);
      const auto its_mask = AttentionMask::padding(alone, kPad);
      const auto memory = frozen.encode(alone, its_mask);
      EXPECT_TRUE(bit_equal(memory, all.narrow(0, one, 1)));
      EXPECT_TRUE(bit_equal(frozen.decode(alone, memory, AttentionMask::causal(), its_mask),
                            logits.narrow(0, one, 1)));
    }
    for (const int threads : {1, 3}) {
      const Threads set(threads);
      EXPECT_TRUE(bit_equal(frozen.encode(src, mask), all));
      EXPECT_TRUE(bit_equal(frozen.decode(src, all, AttentionMask::causal(), mask), logits));
    }
  }
}

// Rows are converted once, where they are written, for those of their products that need it.
TEST(FreezeInt8, SomeProductsOfTheSameRowsStayInFloat32) {
  const torch::NoGradGuard no_grad;
  Dice dice(10);
  const std::vector<std::string> names = {"*self_attn.in_proj_weight", "*linear1.weight",
                                          "*linear2.weight", "*out_proj.weight",
                                          "*multihead_attn.in_proj_weight"};
  for (unsigned seed = 0; seed < 30; ++seed) {
    auto model = any_model(dice, seed);
    if (model->options.d_model() < 16) continue;
    std::vector<std::string> exceptions;
    for (const auto& name : names)
      if (dice.coin()) exceptions.push_back(name);
    const auto wide = freeze(model);
    const auto narrow =
        freeze(model, int8().weights_to_not_convert(exceptions).gemm(GemmBackend::Native));
    SCOPED_TRACE(printed(narrow) + " without " + c10::str(exceptions));
    const auto src = any_ids(dice, 5, 23, true);
    const auto mask = AttentionMask::padding(src, kPad);
    const auto memory = wide.encode(src, mask), got = narrow.encode(src, mask);
    EXPECT_LT(distance(got, memory), 0.12);
    const auto causal = AttentionMask::causal();
    const auto logits = narrow.decode(src, memory, causal, mask);
    EXPECT_LT(distance(logits, wide.decode(src, memory, causal, mask)), 0.12);
    for (const int threads : {1, 3}) {
      const Threads set(threads);
      EXPECT_TRUE(bit_equal(narrow.encode(src, mask), got));
      EXPECT_TRUE(bit_equal(narrow.decode(src, memory, causal, mask), logits));
    }
  }
}

TEST(FreezeInt8, GenerateScoresWhatDecodeScores) {
  const torch::NoGradGuard no_grad;
  Dice dice(3);
  for (unsigned seed = 0; seed < 10; ++seed) {
    auto model = any_model(dice, seed);
    const auto frozen = freeze(model, int8());
    const auto src = any_ids(dice, 3, 9, true);
    const auto mask = AttentionMask::padding(src, kPad);
    const auto options = GenerateOptions(kBegin, kEnd).max_new_tokens(8).length_penalty(0.0);
    const auto found = generate(frozen, src, mask, options);
    for (int64_t b = 0; b < 3; ++b) {
      std::vector<int64_t> with_begin = {kBegin};
      const auto& tokens = found[b][0].tokens;
      with_begin.insert(with_begin.end(), tokens.begin(), tokens.end());
      with_begin.pop_back();
      const auto tgt = torch::tensor(with_begin).unsqueeze(0);
      const auto its_mask = AttentionMask::padding(src.narrow(0, b, 1), kPad);
      const auto scores = frozen
                              .decode(tgt, frozen.encode(src.narrow(0, b, 1), its_mask),
                                      AttentionMask::causal(), its_mask)
                              .log_softmax(-1)[0];
      double score = 0.0;
      for (size_t i = 0; i < tokens.size(); ++i)
        score += scores[static_cast<int64_t>(i)][tokens[i]].item<double>();
      // The steps' attention sums in another order, by which an input may round to its neighbour.
      EXPECT_NEAR(found[b][0].score, score, 0.02 * (1.0 + std::abs(score)));
    }
  }
}

TEST(FreezeInt8, ExceptionsStayInFloat32) {
  const torch::NoGradGuard no_grad;
  Dice dice(4);
  auto model = any_model(dice, 3);
  const auto src = any_ids(dice, 3, 9, false);
  const auto wide = freeze(model);
  const auto none = freeze(model, int8().weights_to_not_convert({"*"}));
  EXPECT_TRUE(bit_equal(none.encode(src), wide.encode(src)));
  EXPECT_EQ(none.bytes().own, 0);
  EXPECT_NE(printed(none).find(", weights=int8 (0 of "), std::string::npos) << none;
  const auto half = freeze(
      model, int8().weights_to_not_convert({"encoder.layers.*", "src_embedding.*", "*embedding*"}));
  EXPECT_TRUE(bit_equal(half.encode(src), wide.encode(src)));
  const auto memory = wide.encode(src);
  EXPECT_FALSE(bit_equal(half.decode(src, memory), wide.decode(src, memory)));
}

TEST(FreezeInt8, AnExceptionThatMatchesNothingIsAnError) {
  Dice dice(5);
  auto model = any_model(dice, 4);
  for (const auto weights : {WeightDtype::Int8, WeightDtype::Float32}) {
    const auto options = FreezeOptions().weights(weights).weights_to_not_convert(
        {"encoder.*", "decoder.layers.0.linear3.weight"});
    const std::string message = message_of([&] { freeze(model, options); });
    EXPECT_NE(message.find("[freeze] weights_to_not_convert must match weights of linear layers or "
                           "tables of tokens, such as decoder.layers.0.linear"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("Got \"decoder.layers.0.linear3.weight\""), std::string::npos);
  }
  // Norms and biases are float32 in any case.
  for (const char* name : {"encoder.layers.0.norm1.weight", "encoder.layers.0.linear1.bias", ""})
    EXPECT_THROW(freeze(model, int8().weights_to_not_convert({name})), c10::ValueError) << name;
}

TEST(FreezeInt8, PrintsWhatIsConverted) {
  const Encoder model = small_encoder();
  EXPECT_EQ(printed(freeze(model)).find("weights="), std::string::npos);
  // Three layers of four weights, and the table of tokens.
  EXPECT_NE(printed(freeze(model, int8())).find(", weights=int8 (13 of 13))"), std::string::npos);
  const auto frozen = freeze(model, int8().weights_to_not_convert({"*linear2*"}));
  EXPECT_NE(printed(frozen).find(", weights=int8 (10 of 13))"), std::string::npos) << frozen;
}

TEST(FreezeInt8, EncodersAreNearFloat32AndIndependentOfTheBatch) {
  const torch::NoGradGuard no_grad;
  const Encoder model = small_encoder(small_options().pooling(encoder::Pooling::TanhOfFirst));
  const auto wide = freeze(model), narrow = freeze(model, int8());
  const auto ids = torch::randint(1, 50, {5, 12}, torch::kLong);
  auto attention_mask = torch::ones_like(ids);
  attention_mask[2].narrow(0, 5, 7).zero_();
  const auto inputs = EncoderInputs().attention_mask(attention_mask);
  const auto expected = wide.forward(ids, inputs), got = narrow.forward(ids, inputs);
  EXPECT_GT(distance(got.embeddings, expected.embeddings), 1e-5) << "the table is converted";
  EXPECT_LT(distance(got.embeddings, expected.embeddings), 0.02);
  EXPECT_LT(distance(got.last_hidden_state, expected.last_hidden_state), 0.05);
  EXPECT_LT(distance(got.pooled, expected.pooled), 0.05);
  const auto alone = narrow.forward(ids.narrow(0, 2, 1).narrow(1, 0, 5));
  EXPECT_TRUE(
      bit_equal(alone.last_hidden_state[0], got.last_hidden_state[2].narrow(0, 0, 5).contiguous()));
}

TEST(FreezeInt8, EncodersTakeTheSameInputs) {
  const torch::NoGradGuard no_grad;
  const Encoder model = small_encoder();
  const auto wide = freeze(model), narrow = freeze(model, int8());
  const auto embeds = torch::randn({2, 6, 48});
  const auto inputs = EncoderInputs().inputs_embeds(embeds);
  EXPECT_TRUE(
      bit_equal(narrow.forward({}, inputs).embeddings, wide.forward({}, inputs).embeddings));
  const auto int32 = torch::randint(0, 50, {2, 6}, torch::kInt);
  EXPECT_TRUE(bit_equal(narrow.forward(int32).last_hidden_state,
                        narrow.forward(int32.to(torch::kLong)).last_hidden_state));
  for (const auto& wrong :
       {torch::full({2, 3}, 50, torch::kLong), torch::full({1, 2}, -1, torch::kLong),
        torch::zeros({1, 2}), torch::zeros({1, 50}, torch::kLong)}) {
    const auto expected = message_of([&] { wide.forward(wrong); });
    EXPECT_FALSE(expected.empty());
    EXPECT_EQ(message_of([&] { narrow.forward(wrong); }), expected);
  }
}

// Token dropout reads the table before the embeddings do.
TEST(FreezeInt8, EncodersDropTokens) {
  const torch::NoGradGuard no_grad;
  const Encoder model = small_encoder(small_options().token_dropout_id(7));
  const auto wide = freeze(model), narrow = freeze(model, int8());
  auto ids = torch::randint(8, 50, {2, 6}, torch::kLong);
  ids[1][2] = 7;
  const auto expected = wide.forward(ids), got = narrow.forward(ids);
  EXPECT_GT(distance(got.embeddings, expected.embeddings), 1e-5) << "the table is converted";
  EXPECT_LT(distance(got.embeddings, expected.embeddings), 0.02);
  EXPECT_LT(distance(got.last_hidden_state, expected.last_hidden_state), 0.05);
  for (const auto& wrong : {torch::full({2, 3}, 50, torch::kLong), torch::zeros({1, 2})}) {
    const auto expected = message_of([&] { wide.forward(wrong); });
    EXPECT_NE(expected.find("[Encoder]"), std::string::npos) << expected;
    EXPECT_EQ(message_of([&] { narrow.forward(wrong); }), expected);
  }
}

TEST(FreezeInt8, LayersThatMixByFourierAreNearFloat32) {
  const torch::NoGradGuard no_grad;
  const auto layer = TransformerEncoderLayerOptions(48, 1).mixing(Mixing::Fourier);
  const Encoder model = small_encoder(small_options(layer));
  const auto wide = freeze(model), narrow = freeze(model, int8());
  // Three layers of two weights, and the table of tokens.
  EXPECT_NE(printed(narrow).find(", weights=int8 (7 of 7))"), std::string::npos) << narrow;
  const auto ids = torch::randint(0, 50, {3, 9}, torch::kLong);
  const auto inputs = EncoderInputs().output_hidden_states(true);
  const auto expected = wide.forward(ids, inputs), got = narrow.forward(ids, inputs);
  ASSERT_EQ(got.hidden_states.size(), 4U);
  for (size_t i = 0; i < got.hidden_states.size(); ++i) {
    EXPECT_GT(distance(got.hidden_states[i], expected.hidden_states[i]), 1e-5) << i;
    EXPECT_LT(distance(got.hidden_states[i], expected.hidden_states[i]), 0.05) << i;
  }
  EXPECT_TRUE(bit_equal(got.hidden_states.back(), got.last_hidden_state));
}

TEST(FreezeInt8, TransformersRefuseTheSameIds) {
  Dice dice(6);
  auto model = any_model(dice, 5);
  const auto wide = freeze(model), narrow = freeze(model, int8());
  for (const auto& wrong : {torch::full({2, 3}, 60, torch::kLong), torch::zeros({1, 2})}) {
    const auto expected = message_of([&] { wide.encode(wrong); });
    EXPECT_FALSE(expected.empty());
    EXPECT_EQ(message_of([&] { narrow.encode(wrong); }), expected);
  }
}

TEST(FreezeInt8, LayersThatRunTwiceAreConvertedOnce) {
  torch::manual_seed(testing::seed(7));
  const auto layer = TransformerEncoderLayerOptions(32, 4).d_ff(64);
  TransformerEncoder once(TransformerEncoderOptions(layer, 2));
  TransformerEncoder twice(TransformerEncoderOptions(layer, 2).order({0, 1, 0, 1}));
  EXPECT_EQ(freeze(twice, int8()).bytes().own, freeze(once, int8()).bytes().own);
}

// Everything but what is not converted, in a quarter of the memory.
TEST(FreezeInt8, AMovedModelIsFreed) {
  torch::manual_seed(testing::seed(8));
  Transformer model(TransformerOptions(300, 300).d_model(64).num_heads(4).d_ff(256).max_len(16).tie(
      Tying::ThreeWay));
  const int64_t all = freeze(model).bytes().shared;
  const auto ids = torch::randint(3, 300, {2, 9}, torch::kLong);
  const auto expected = freeze(model, int8()).encode(ids);
  const std::weak_ptr<TransformerImpl> alive = model.ptr();
  const c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> table(
      model->tgt_embedding->token_embedding->weight.getIntrusivePtr());
  auto frozen = freeze(std::move(model), int8());
  EXPECT_TRUE(model.is_empty());
  EXPECT_TRUE(alive.expired());
  EXPECT_TRUE(table.expired()) << "no float32 copy of the table is kept";
  EXPECT_LT(frozen.bytes().own + frozen.bytes().shared, 0.32 * static_cast<double>(all));
  EXPECT_TRUE(bit_equal(frozen.encode(ids), expected));

  Encoder encoder = small_encoder();
  const auto of_encoder = freeze(std::move(encoder), int8());
  EXPECT_TRUE(encoder.is_empty());
  EXPECT_TRUE(
      of_encoder.forward(ids.remainder(50)).last_hidden_state.isfinite().all().item<bool>());
}

TEST(FreezeInt8, AModelThatCannotBeFrozenIsNotMoved) {
  Encoder model = small_encoder();
  EXPECT_THROW(freeze(std::move(model), int8().weights_to_not_convert({"nothing"})),
               c10::ValueError);
  ASSERT_FALSE(model.is_empty());
  EXPECT_NO_THROW(freeze(model));
}

TEST(FreezeInt8, ChangesOfTheSourceAreSeen) { expect_changes_are_seen(int8()); }

// A weight that is not finite makes its column NaN, as in float32; an input, its row.
TEST(FreezeInt8, NaNStaysInItsColumn) {
  const torch::NoGradGuard no_grad;
  Dice dice(9);
  auto model = any_model(dice, 9);
  auto weight = model->final_layer->effective_weight();
  const auto src = any_ids(dice, 2, 5, false);
  weight[1][0] = std::numeric_limits<float>::quiet_NaN();  // no source has this id
  const auto frozen = freeze(model, int8());
  const auto logits = frozen.decode(src, frozen.encode(src), AttentionMask::causal());
  EXPECT_TRUE(logits.select(-1, 1).isnan().all().item<bool>());
  EXPECT_EQ(logits.isnan().sum().item<int64_t>(), 2 * 5);
}

// In a batch, a token that is not finite changes no bit of the other sequences.
TEST(FreezeInt8, InputsThatAreNotFiniteStayInTheirSequence) {
  const torch::NoGradGuard no_grad;
  const auto frozen = freeze(small_encoder(), int8());
  const auto embeds = torch::randn({3, 7, 48});
  const auto expected =
      frozen.forward({}, EncoderInputs().inputs_embeds(embeds.clone())).last_hidden_state;
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    embeds[1][4][11] = value;
    const auto got = frozen.forward({}, EncoderInputs().inputs_embeds(embeds)).last_hidden_state;
    EXPECT_TRUE(got[1].isnan().all().item<bool>());
    for (const int64_t other : {0, 2})
      EXPECT_TRUE(bit_equal(got[other].contiguous(), expected[other].contiguous()));
  }
}

// A row of zeros has the unit 0, and gives the bias alone.
TEST(FreezeInt8, RowsOfZerosGiveTheBias) {
  const torch::NoGradGuard no_grad;
  Dice dice(10);
  for (unsigned seed = 0; seed < 5; ++seed) {
    auto model = any_model(dice, seed);
    for (auto& parameter : model->parameters()) {
      if (parameter.dim() == 2) parameter[dice(0, parameter.size(0) - 1)].zero_();
    }
    model->final_layer->effective_weight()[7].zero_();
    const auto frozen = freeze(model, int8());
    const auto src = any_ids(dice, 2, 6, false);
    const auto logits = frozen.decode(src, frozen.encode(src), AttentionMask::causal());
    EXPECT_TRUE(logits.isfinite().all().item<bool>());
    const auto& bias = model->final_layer->bias;
    const float expected = bias.defined() ? bias[7].item<float>() : 0.0F;
    EXPECT_TRUE((logits.select(-1, 7) == expected).all().item<bool>());
  }
}

TEST(FreezeInt8, TakesTheSmallestSizes) {
  const torch::NoGradGuard no_grad;
  for (const int64_t d_ff : {1, 3}) {
    Transformer model(
        TransformerOptions(1, 1).d_model(2).num_heads(1).d_ff(d_ff).max_len(8).norm_first(true));
    model->eval();
    const auto src = torch::zeros({2, 3}, torch::kLong);
    for (const auto weights : {WeightDtype::Int8, WeightDtype::BFloat16}) {
      const auto frozen = freeze(model, FreezeOptions().weights(weights));
      const auto logits = frozen.decode(src, frozen.encode(src), AttentionMask::causal());
      EXPECT_EQ(logits.sizes(), (std::vector<int64_t>{2, 3, 1}));
      EXPECT_TRUE(logits.isfinite().all().item<bool>());
    }
  }
}

}  // namespace
}  // namespace posenc::testing
