// Frozen models whose products are in bfloat16: near the modules, alone and beside weights in other
// dtypes. In addition: what is converted, its memory, and how it is printed.

#include <gtest/gtest.h>

#include <limits>

#include "inference/small_encoder.h"
#include "posenc/inference/freeze.h"
#include "posenc/models/classifier.h"
#include "posenc/models/frozen_classifier.h"
#include "support/compare.h"
#include "support/threads.h"

namespace posenc::testing {
namespace {

FreezeOptions computing(WeightDtype weights = WeightDtype::Float32) {
  return FreezeOptions().weights(weights).compute(ComputeDtype::BFloat16);
}

// Of the norm of the result, for two stacks of any sizes.
constexpr double kFar = 0.05, kFarInt8 = 0.15;

TEST(ComputeBFloat16, IsNearTheModule) {
  const torch::NoGradGuard no_grad;
  Dice dice(11);
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto model = any_model(dice, seed);
    const auto exact = freeze(model);
    // One row, a few, and many.
    const auto src = any_ids(dice, dice(1, 9), dice(1, 60), dice.coin());
    const auto mask = AttentionMask::padding(src, kPad);
    const auto memory = exact.encode(src, mask);
    const auto logits = exact.decode(src, memory, AttentionMask::causal(), mask);
    for (const auto weights : {WeightDtype::Float32, WeightDtype::BFloat16, WeightDtype::Int8}) {
      const auto frozen = freeze(model, computing(weights));
      SCOPED_TRACE(printed(frozen));
      const double most = weights == WeightDtype::Int8 ? kFarInt8 : kFar;
      const auto encoded = frozen.encode(src, mask);
      EXPECT_FALSE(
          bit_equal(encoded, freeze(model, FreezeOptions().weights(weights)).encode(src, mask)));
      EXPECT_LT(distance(encoded, memory), most);
      const auto decoded = frozen.decode(src, memory, AttentionMask::causal(), mask);
      EXPECT_LT(distance(decoded, logits), most);
      const Threads set(3);
      EXPECT_TRUE(bit_equal(frozen.encode(src, mask), encoded));
      EXPECT_TRUE(bit_equal(frozen.decode(src, memory, AttentionMask::causal(), mask), decoded));
    }
  }
}

// Also of rows that are few where the others are many.
TEST(ComputeBFloat16, ARowDoesNotDependOnItsBatch) {
  const torch::NoGradGuard no_grad;
  const auto frozen = freeze(small_encoder(), computing());
  const auto ids = torch::randint(1, 50, {7, 33}, torch::kLong);
  const auto all = frozen.forward(ids).last_hidden_state;
  for (int64_t b = 0; b < 7; ++b)
    EXPECT_TRUE(
        bit_equal(frozen.forward(ids.narrow(0, b, 1)).last_hidden_state, all.narrow(0, b, 1)));
}

// A token after another finds what decode() has for it, but for attention, which is float32 there.
TEST(ComputeBFloat16, GeneratesWhatItDecodes) {
  const torch::NoGradGuard no_grad;
  Dice dice(12);
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto frozen = freeze(any_model(dice, seed), computing());
    SCOPED_TRACE(printed(frozen));
    const auto src = any_ids(dice, dice(1, 5), dice(1, 20), true);
    const auto mask = AttentionMask::padding(src, kPad);
    const auto found = generate(
        frozen, src, mask, GenerateOptions(kBegin, kEnd).max_new_tokens(6).length_penalty(0.0));
    const auto memory = frozen.encode(src, mask);
    for (size_t b = 0; b < found.size(); ++b) {
      std::vector<int64_t> given = {kBegin};
      const auto& tokens = found[b][0].tokens;
      given.insert(given.end(), tokens.begin(), tokens.end() - 1);
      const auto at = static_cast<int64_t>(b);
      const auto log_probs =
          frozen
              .decode(torch::tensor(given).unsqueeze(0), memory.narrow(0, at, 1),
                      AttentionMask::causal(), AttentionMask::padding(src.narrow(0, at, 1), kPad))
              .log_softmax(-1)[0]
              .gather(1, torch::tensor(tokens).unsqueeze(1));
      EXPECT_NEAR(log_probs.sum().item<double>(), found[b][0].score,
                  0.1 * static_cast<double>(tokens.size()));
    }
  }
}

TEST(ComputeBFloat16, KeepsTablesInTheirDtype) {
  const torch::NoGradGuard no_grad;
  const Encoder model = small_encoder();
  const auto ids = torch::randint(1, 50, {5, 12}, torch::kLong);
  EXPECT_TRUE(bit_equal(freeze(model, computing()).forward(ids).embeddings,
                        freeze(model).forward(ids).embeddings));
  for (const auto weights : {WeightDtype::Int8, WeightDtype::BFloat16})
    EXPECT_TRUE(bit_equal(freeze(model, computing(weights)).forward(ids).embeddings,
                          freeze(model, FreezeOptions().weights(weights)).forward(ids).embeddings));
}

TEST(ComputeBFloat16, TakesExceptionsAndPrintsWhatIsConverted) {
  const Encoder model = small_encoder();
  const auto says = [&](const FreezeOptions& options, const std::string& text) {
    const std::string all = printed(freeze(model, options));
    EXPECT_NE(all.find(text), std::string::npos) << all;
  };
  says(computing(), ", compute=bfloat16 (12 of 13))");
  says(computing(WeightDtype::BFloat16), ", weights=bfloat16, compute=bfloat16 (13 of 13))");
  says(computing(WeightDtype::Int8), ", weights=int8, compute=bfloat16 (13 of 13))");
  says(computing().weights_to_not_convert({"*linear2*"}), ", compute=bfloat16 (9 of 13))");
  const auto message = message_of(
      [&] { freeze(model, computing().weights_to_not_convert({"encoder.layers.9.*"})); });
  EXPECT_NE(message.find("[freeze] weights_to_not_convert must match"), std::string::npos)
      << message;
  // Attention has no weights.
  const torch::NoGradGuard no_grad;
  const auto ids = torch::randint(0, 50, {2, 6}, torch::kLong);
  const auto exact = freeze(model).forward(ids).last_hidden_state;
  const auto near =
      freeze(model, computing().weights_to_not_convert({"*"})).forward(ids).last_hidden_state;
  EXPECT_FALSE(bit_equal(near, exact));
  EXPECT_LT(distance(near, exact), 0.01);
}

TEST(ComputeBFloat16, TakesHalfOfTheMemoryOfProducts) {
  torch::manual_seed(testing::seed(8));
  Transformer model(TransformerOptions(300, 300).d_model(64).num_heads(4).d_ff(256).max_len(16).tie(
      Tying::ThreeWay));
  const int64_t all = freeze(model).bytes().shared;
  int64_t weights = 0;
  for (const auto& parameter : model->parameters())
    weights += parameter.dim() == 2 ? parameter.numel() : 0;
  const int64_t table = 300 * 64, rounded_table = 304 * 64;  // in blocks of 16 rows
  const auto both = freeze(model, computing(WeightDtype::BFloat16)).bytes();
  EXPECT_EQ(both.own + both.shared, all - 2 * weights + 2 * (rounded_table - table));
  const auto products = freeze(model, computing()).bytes();
  EXPECT_EQ(products.own + products.shared, all - 2 * (weights - table) + 2 * rounded_table);
  // The table is the source's own, beside which there is a copy to multiply by.
  EXPECT_EQ(products.own, 2 * (weights - table) + 2 * rounded_table);
}

// The copy by which the head multiplies.
TEST(ComputeBFloat16, CountsTheTableOfATiedHead) {
  torch::manual_seed(testing::seed(9));
  Classifier model(ClassifierOptions(small_options(), head::Kind::Masked,
                                     EncoderHeadOptions(48, 50).tied(true)));
  model->eval();
  const auto frozen = freeze(model, computing());
  EXPECT_NE(printed(frozen).find("compute=bfloat16 (13 of 13)"), std::string::npos)
      << printed(frozen);
  const int64_t rounded_table = 2 * 64 * 48;  // in blocks of 16 rows
  EXPECT_EQ(frozen.bytes().own, freeze(model->encoder, computing()).bytes().own + rounded_table);
  EXPECT_EQ(frozen.bytes().shared, freeze(model->encoder, computing()).bytes().shared +
                                       static_cast<int64_t>(model->head->bias.nbytes()));
  const auto without =
      freeze(model, computing().weights_to_not_convert({"*.word_embeddings.weight"}));
  EXPECT_NE(printed(without).find("compute=bfloat16 (12 of 13)"), std::string::npos)
      << printed(without);
}

TEST(ComputeBFloat16, KeepsWhatIsNotFiniteInItsRow) {
  const torch::NoGradGuard no_grad;
  TransformerEncoder model(
      TransformerEncoderOptions(TransformerEncoderLayerOptions(16, 2).d_ff(20), 2));
  model->eval();
  const auto frozen = freeze(model, computing());
  auto x = torch::randn({4, 5, 16});
  const auto expected = frozen.forward(x);
  x[1][2][3] = std::numeric_limits<float>::quiet_NaN();
  const auto got = frozen.forward(x);
  EXPECT_TRUE(got[1].isnan().all().item<bool>());
  for (const int64_t b : {0, 2, 3}) EXPECT_TRUE(bit_equal(got[b], expected[b]));
}

TEST(ComputeBFloat16, ChangesOfTheSourceAreSeen) { expect_changes_are_seen(computing()); }

}  // namespace
}  // namespace posenc::testing
