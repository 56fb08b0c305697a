// Frozen models with weights in bfloat16 against float32 models whose weights were rounded by
// LibTorch: the same bits. In addition: what is converted, its memory, and how it is printed.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "inference/small_encoder.h"
#include "posenc/inference/freeze.h"
#include "posenc/models/frozen_classifier.h"
#include "support/compare.h"
#include "support/threads.h"

namespace posenc::testing {
namespace {

FreezeOptions bfloat16() { return FreezeOptions().weights(WeightDtype::BFloat16); }

// A copy in which the weights whose names contain one of `parts` are numbers of bfloat16.
template <typename Model>
Model rounded_copy(const Model& model, const std::vector<std::string>& parts) {
  using Impl = typename Model::ContainedType;
  const Model copy(std::dynamic_pointer_cast<Impl>(model->clone()));
  for (const auto& item : copy->named_parameters()) {
    const bool is_named = std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
      return item.key().find(part) != std::string::npos;
    });
    if (is_named && item.value().dim() == 2)
      item.value().set_data(item.value().detach().to(torch::kBFloat16).to(torch::kFloat));
  }
  Model(copy)->eval();
  return copy;
}

TEST(FreezeBFloat16, HasTheBitsOfRoundedWeights) {
  const torch::NoGradGuard no_grad;
  Dice dice(1);
  for (unsigned seed = 0; seed < 30; ++seed) {
    const auto model = any_model(dice, seed);
    const auto narrow = freeze(model, bfloat16());
    SCOPED_TRACE(printed(narrow));
    const auto rounded = freeze(rounded_copy(model, {""}));
    // One row, a few, and many: for each another kernel.
    const auto src = any_ids(dice, dice(1, 9), dice(1, 30), dice.coin());
    const auto mask = AttentionMask::padding(src, kPad);
    const auto memory = rounded.encode(src, mask);
    EXPECT_FALSE(bit_equal(memory, freeze(model).encode(src, mask))) << "weights are converted";
    const auto logits = rounded.decode(src, memory, AttentionMask::causal(), mask);
    for (const int threads : {1, 3}) {
      const Threads set(threads);
      EXPECT_TRUE(bit_equal(narrow.encode(src, mask), memory));
      EXPECT_TRUE(bit_equal(narrow.decode(src, memory, AttentionMask::causal(), mask), logits));
    }
    const auto options = GenerateOptions(kBegin, kEnd).max_new_tokens(8).num_beams(2);
    const auto expected = generate(rounded, src, mask, options);
    const auto got = generate(narrow, src, mask, options);
    for (size_t b = 0; b < expected.size(); ++b) {
      EXPECT_EQ(got[b][0].tokens, expected[b][0].tokens);
      EXPECT_EQ(got[b][0].score, expected[b][0].score);
    }
  }
}

TEST(FreezeBFloat16, EncodersHaveTheBitsOfRoundedWeights) {
  const torch::NoGradGuard no_grad;
  const Encoder model = small_encoder(small_options().pooling(encoder::Pooling::TanhOfFirst));
  const auto narrow = freeze(model, bfloat16());
  const auto rounded = freeze(rounded_copy(model, {"layers.", "word_embeddings"}));
  const auto ids = torch::randint(1, 50, {5, 12}, torch::kLong);
  auto attention_mask = torch::ones_like(ids);
  attention_mask[2].narrow(0, 5, 7).zero_();
  const auto inputs = EncoderInputs().attention_mask(attention_mask).output_hidden_states(true);
  const auto expected = rounded.forward(ids, inputs), got = narrow.forward(ids, inputs);
  EXPECT_TRUE(bit_equal(got.embeddings, expected.embeddings));
  EXPECT_TRUE(bit_equal(got.last_hidden_state, expected.last_hidden_state));
  EXPECT_TRUE(bit_equal(got.pooled, expected.pooled));
  EXPECT_FALSE(bit_equal(got.embeddings, freeze(model).forward(ids, inputs).embeddings));
  const auto int32 = narrow.forward(ids.to(torch::kInt), inputs);
  EXPECT_TRUE(bit_equal(int32.last_hidden_state, expected.last_hidden_state));
  const auto wrong = torch::full({2, 3}, 50, torch::kLong);
  EXPECT_EQ(message_of([&] { narrow.forward(wrong); }),
            message_of([&] { rounded.forward(wrong); }));
}

TEST(FreezeBFloat16, NumbersThatAreNotFiniteAndSubnormalOnesAreRounded) {
  const torch::NoGradGuard no_grad;
  const float largest = std::numeric_limits<float>::max(),
              nan = std::numeric_limits<float>::quiet_NaN();
  Dice dice(2);
  auto model = any_model(dice, 2);
  auto weight = model->final_layer->effective_weight();
  weight[3].fill_(1e-40);
  weight[4][0] = std::numeric_limits<float>::infinity();
  weight[5][1] = largest;  // rounds to infinity
  weight[6][0] = nan;
  weight[6][1] = std::bit_cast<float>(0x7f800001U);    // a NaN whose high half alone is infinite
  weight[7].fill_(std::bit_cast<float>(0x3f808000U));  // ties
  weight[8].fill_(std::bit_cast<float>(0x3f818000U));
  const auto src = any_ids(dice, 2, 5, false) + 10;  // their rows are finite
  const auto narrow = freeze(model, bfloat16()), rounded = freeze(rounded_copy(model, {""}));
  const auto memory = torch::randn({2, 5, model->options.d_model()});
  const auto expected = rounded.decode(src, memory), got = narrow.decode(src, memory);
  EXPECT_TRUE(torch::equal(got.isnan(), expected.isnan()));
  EXPECT_TRUE(got.select(-1, 6).isnan().all().item<bool>());
  EXPECT_FALSE(got.select(-1, 5).isfinite().any().item<bool>());
  EXPECT_FALSE(got.select(-1, 3).isnan().any().item<bool>());
  EXPECT_TRUE(bit_equal(got.nan_to_num(3.0), expected.nan_to_num(3.0)));
}

TEST(FreezeBFloat16, TakesHalfOfTheMemory) {
  torch::manual_seed(testing::seed(8));
  Transformer model(TransformerOptions(300, 300).d_model(64).num_heads(4).d_ff(256).max_len(16).tie(
      Tying::ThreeWay));
  const int64_t all = freeze(model).bytes().shared;
  int64_t weights = 0;
  for (const auto& parameter : model->parameters())
    weights += parameter.dim() == 2 ? parameter.numel() : 0;
  const auto ids = torch::randint(3, 300, {2, 9}, torch::kLong);
  const auto expected = freeze(model, bfloat16()).encode(ids);
  const std::weak_ptr<TransformerImpl> alive = model.ptr();
  const auto frozen = freeze(std::move(model), bfloat16());
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(frozen.bytes().own + frozen.bytes().shared, all - 2 * weights);
  EXPECT_TRUE(bit_equal(frozen.encode(ids), expected));
}

TEST(FreezeBFloat16, TakesExceptionsAndPrintsWhatIsConverted) {
  const Encoder model = small_encoder();
  EXPECT_NE(printed(freeze(model, bfloat16())).find(", weights=bfloat16 (13 of 13))"),
            std::string::npos);
  const auto some = freeze(model, bfloat16().weights_to_not_convert({"*linear2*"}));
  EXPECT_NE(printed(some).find(", weights=bfloat16 (10 of 13))"), std::string::npos) << some;
  const torch::NoGradGuard no_grad;
  const auto ids = torch::randint(0, 50, {2, 6}, torch::kLong);
  EXPECT_TRUE(bit_equal(
      freeze(model, bfloat16().weights_to_not_convert({"*"})).forward(ids).last_hidden_state,
      freeze(model).forward(ids).last_hidden_state));
  const auto message =
      message_of([&] { freeze(model, bfloat16().weights_to_not_convert({"encoder.layers.9.*"})); });
  EXPECT_NE(message.find("[freeze] weights_to_not_convert must match"), std::string::npos);
  EXPECT_NE(message.find("Got \"encoder.layers.9.*\""), std::string::npos) << message;
}

// Sums of 16 bits limit rows in 8 bits only.
TEST(FreezeBFloat16, RowsMayBeLong) {
  const torch::NoGradGuard no_grad;
  const auto layer = TransformerEncoderLayerOptions(2, 1).d_ff(140000);
  TransformerEncoder model(TransformerEncoderOptions(layer, 1));
  model->eval();
  const auto message =
      message_of([&] { freeze(model, FreezeOptions().weights(WeightDtype::Int8)); });
  EXPECT_NE(message.find("must have at most 66571 elements"), std::string::npos) << message;
  EXPECT_NE(message.find("layers.0.linear2.weight. Got [2, 140000]"), std::string::npos) << message;
  const auto x = torch::randn({1, 3, 2});
  EXPECT_TRUE(bit_equal(freeze(model, bfloat16()).forward(x),
                        freeze(rounded_copy(model, {"layers."})).forward(x)));
}

TEST(FreezeBFloat16, ChangesOfTheSourceAreSeen) { expect_changes_are_seen(bfloat16()); }

}  // namespace
}  // namespace posenc::testing
