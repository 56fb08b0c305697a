// A stack is given its padding: what tokens get does not depend on whether its rows are dropped or
// computed, nor on what else the mask consists of.

#include <gtest/gtest.h>

#include "inference/freeze/model.h"
#include "inference/layer_kinds.h"
#include "inference/models.h"
#include "modules/drawn_module.h"
#include "posenc/models/frozen_encoder.h"

namespace posenc::padding_test {
namespace {

using testing::Dice;
using testing::drawn;
using testing::layer_kinds;
using testing::near;

constexpr int64_t kBatch = 4, kLength = 9, kWidth = 16, kHeads = 2;

// Integers (B, L): padding on the right, on the left, between tokens, and none.
torch::Tensor some_tokens() {
  auto tokens = torch::ones({kBatch, kLength}, torch::kLong);
  tokens[0].narrow(0, 5, 4).fill_(0);
  tokens[1].narrow(0, 0, 3).fill_(0);
  tokens[2].narrow(0, 2, 3).fill_(0);
  return tokens;
}

// Pairs (B, H, L, L) of which the token `query` sees none in the first head.
torch::Tensor blind_in_first_head(int64_t query) {
  auto pairs = torch::ones({kBatch, kHeads, kLength, kLength}, torch::kBool);
  pairs.select(1, 0).select(1, query).fill_(false);
  return pairs;
}

torch::Tensor only(const torch::Tensor& x, const torch::Tensor& tokens) {
  return x * tokens.unsqueeze(-1).to(x.scalar_type());
}

// The masks of a batch with this padding.
std::vector<AttentionMask> masks_of(const TransformerEncoderOptions& stack,
                                    const torch::Tensor& tokens) {
  const auto padding = AttentionMask::key_padding(tokens);
  if (testing::mixes_all_tokens(stack)) return {padding};
  auto most = torch::rand({kBatch, kHeads, kLength, kLength}) < 0.5;
  const auto bias = torch::randn({kBatch, 1, kLength, kLength});
  return {padding, padding & AttentionMask::allowed(blind_in_first_head(6)),
          padding & AttentionMask::allowed(blind_in_first_head(0)) & AttentionMask::causal(),
          padding & AttentionMask::allowed(most),
          padding & AttentionMask::additive(bias.masked_fill(bias < -1.0, -INFINITY))};
}

TEST(Padding, IsDroppedOrComputedWithTheSameResult) {
  const torch::NoGradGuard no_grad;
  const auto tokens = some_tokens(), x = torch::randn({kBatch, kLength, kWidth});
  for (const auto& [name, stack] : layer_kinds(kWidth, kHeads)) {
    SCOPED_TRACE(name);
    auto encoder = drawn(TransformerEncoder(stack));
    const auto frozen = freeze(encoder);
    for (const AttentionMask& mask : masks_of(stack, tokens)) {
      const auto expected = encoder->forward(x, mask);
      EXPECT_TRUE(near(only(frozen.forward(x, mask), tokens), only(expected, tokens)));
      TransformerEncoderRecord record;
      const auto whole = inference::run(*inference::FrozenAccess::model(frozen), x, mask, {},
                                        torch::ones({1, 1}, torch::kBool), record);
      EXPECT_TRUE(near(whole, expected));
    }
  }
}

// As in query expansion: they attend to tokens, and no token to them.
TEST(Padding, SomeOfItsRowsAreComputed) {
  const torch::NoGradGuard no_grad;
  const auto tokens = some_tokens(), x = torch::randn({kBatch, kLength, kWidth});
  for (const auto& [name, stack] : layer_kinds(kWidth, kHeads)) {
    SCOPED_TRACE(name);
    auto encoder = drawn(TransformerEncoder(stack));
    for (const auto weights : {WeightDtype::Float32, WeightDtype::Int8}) {
      const auto frozen = freeze(encoder, FreezeOptions().weights(weights));
      const auto run = [&](const torch::Tensor& computed, const AttentionMask& mask) {
        TransformerEncoderRecord record;
        return inference::run(*inference::FrozenAccess::model(frozen), x, mask, {}, computed,
                              record);
      };
      // What sees nothing has the mean of what is computed: DeBERTa's padding, and XLNet's by
      // masks.
      const bool sees_rows =
          stack.layer().disentangled().has_value() || stack.layer().transformer_xl().has_value();
      const auto computed = sees_rows ? torch::ones({kBatch, kLength}, torch::kBool)
                                      : torch::rand({kBatch, kLength}) < 0.5;
      const auto wanted = tokens.ne(0).logical_or(computed);
      for (const AttentionMask& mask : masks_of(stack, tokens)) {
        const auto got = run(computed, mask);
        const auto expected = weights == WeightDtype::Float32
                                  ? encoder->forward(x, mask)
                                  : run(torch::ones({1, 1}, torch::kBool), mask);
        EXPECT_TRUE(near(only(got, wanted), only(expected, wanted)));
      }
    }
  }
}

TEST(Padding, RowsThatAreNotKeptAreZerosAfterEachLayer) {
  const torch::NoGradGuard no_grad;
  const auto tokens = some_tokens(), x = torch::randn({kBatch, kLength, kWidth});
  const auto kept = (torch::rand({kBatch, kLength}) < 0.7).to(torch::kLong);
  for (const auto weights : {WeightDtype::Float32, WeightDtype::Int8}) {
    for (const auto& [name, stack] : layer_kinds(kWidth, kHeads)) {
      SCOPED_TRACE(name);
      auto encoder = drawn(TransformerEncoder(stack));
      const auto frozen = freeze(encoder, FreezeOptions().weights(weights));
      for (const auto& rows : {tokens, kept}) {
        TransformerEncoderRecord record, own;
        record.output_hidden_states = own.output_hidden_states = true;
        const auto mask = AttentionMask::key_padding(tokens);
        const auto expected = encoder->forward_with(x, mask, record, {}, rows);
        const auto got = frozen.forward_with(x, mask, own, {}, {}, std::nullopt, rows);
        if (weights == WeightDtype::Float32) {
          EXPECT_TRUE(near(only(got, tokens), only(expected, tokens)));
          for (size_t i = 1; i < own.hidden_states.size(); ++i) {
            EXPECT_TRUE(
                near(only(own.hidden_states[i], tokens), only(record.hidden_states[i], tokens)));
          }
        } else {
          EXPECT_LT((only(got, tokens) - only(expected, tokens)).norm().item<double>(),
                    0.1 * only(expected, tokens).norm().item<double>());
        }
      }
    }
  }
}

// A token that sees no key gets the mean of its own sequence, whatever is beside that in the batch.
TEST(Padding, ATokenWithoutKeysGetsWhatItGetsInItsSequenceAlone) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, kLength, kWidth});
  auto tokens = torch::ones({2, kLength}, torch::kLong);
  tokens[0].narrow(0, 5, 4).fill_(0);
  const auto pairs = blind_in_first_head(3).narrow(0, 0, 2);
  for (const auto& [name, stack] : layer_kinds(kWidth, kHeads)) {
    if (!stack.layer().disentangled() && !stack.layer().transformer_xl()) continue;
    if (stack.layer().conformer()) continue;  // whose tokens see padding
    SCOPED_TRACE(name);
    auto encoder = drawn(TransformerEncoder(stack));
    const auto frozen = freeze(encoder);
    const auto mask = AttentionMask::key_padding(tokens) & AttentionMask::allowed(pairs);
    const auto alone = encoder->forward(
        x.narrow(0, 0, 1).narrow(1, 0, 5),
        AttentionMask::allowed(pairs.narrow(0, 0, 1).narrow(2, 0, 5).narrow(3, 0, 5)));
    EXPECT_TRUE(near(encoder->forward(x, mask)[0].narrow(0, 0, 5), alone[0]));
    EXPECT_TRUE(near(frozen.forward(x, mask)[0].narrow(0, 0, 5), alone[0]));
    auto other = x.clone();
    other[0].narrow(0, 5, 4).fill_(100.0);  // padding
    EXPECT_TRUE(near(encoder->forward(other, mask)[0].narrow(0, 0, 5), alone[0]));
    const AttentionShape shape = {2, kHeads, kLength, kLength};
    EXPECT_TRUE(near(encoder->forward(x, mask.resolved(shape, x))[0].narrow(0, 0, 5), alone[0]));
  }
}

// The only keys that a token may attend to are padding.
TEST(Padding, IsNotSeenByATokenThatMaySeeNothingElse) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({1, kLength, kWidth});
  for (const int64_t begin : {0, 5}) {  // on the left, and on the right
    auto tokens = torch::ones({1, kLength}, torch::kLong);
    tokens[0].narrow(0, begin, 4).fill_(0);
    auto pairs = torch::ones({1, kLength, kLength}, torch::kBool);
    pairs[0][4].copy_(tokens[0].eq(0));
    const auto mask = AttentionMask::key_padding(tokens) & AttentionMask::allowed(pairs);
    for (const auto& [name, stack] : layer_kinds(kWidth, kHeads)) {
      if (testing::mixes_all_tokens(stack)) continue;
      SCOPED_TRACE(name);
      auto encoder = drawn(TransformerEncoder(stack));
      EXPECT_TRUE(near(only(freeze(encoder).forward(x, mask), tokens),
                       only(encoder->forward(x, mask), tokens)));
    }
  }
}

// In a module it reaches all tokens, as in PyTorch: attention multiplies it by 0.
TEST(Padding, OfAFrozenStackMayBeNaN) {
  const torch::NoGradGuard no_grad;
  const auto tokens = some_tokens(), x = torch::randn({kBatch, kLength, kWidth});
  const auto other = x.masked_fill(tokens.eq(0).unsqueeze(-1), NAN);
  for (const auto& [name, stack] : layer_kinds(kWidth, kHeads)) {
    if (stack.layer().mixing() != Mixing::Attention || stack.layer().conformer()) continue;
    SCOPED_TRACE(name);
    const auto frozen = freeze(drawn(TransformerEncoder(stack)));
    for (const AttentionMask& mask : masks_of(stack, tokens)) {
      const auto bias = torch::zeros({kBatch, 1, kLength, kLength})
                            .masked_fill(tokens.eq(0).unsqueeze(1).unsqueeze(3), NAN);
      const auto expected = frozen.forward(x, mask);
      EXPECT_TRUE(near(frozen.forward(other, mask), expected));
      EXPECT_TRUE(near(frozen.forward(x, mask & AttentionMask::additive(bias)), expected));
    }
  }
}

TEST(Padding, GradientsOfATokenWithoutKeysAreThoseOfItsSequence) {
  for (const auto& [name, stack] : layer_kinds(kWidth, kHeads)) {
    if (!stack.layer().disentangled() && !stack.layer().transformer_xl()) continue;
    if (stack.layer().conformer()) continue;
    SCOPED_TRACE(name);
    auto encoder = drawn(TransformerEncoder(stack));
    auto tokens = torch::ones({1, kLength}, torch::kLong);
    tokens[0].narrow(0, 5, 4).fill_(0);
    const auto pairs = blind_in_first_head(3).narrow(0, 0, 1);
    const auto x = torch::randn({1, kLength, kWidth}, torch::requires_grad());
    const auto mask = AttentionMask::key_padding(tokens) & AttentionMask::allowed(pairs);
    encoder->forward(x, mask).narrow(1, 0, 5).pow(2).sum().backward();
    const auto own = x.detach().narrow(1, 0, 5).clone().requires_grad_();
    const auto alone = AttentionMask::allowed(pairs.narrow(2, 0, 5).narrow(3, 0, 5));
    encoder->forward(own, alone).pow(2).sum().backward();
    EXPECT_TRUE(near(x.grad().narrow(1, 0, 5), own.grad()));
    EXPECT_EQ(x.grad().narrow(1, 5, 4).abs().max().item<double>(), 0.0);
  }
}

// An encoder of any kind of layers, any pooling and any treatment of padding.
EncoderOptions any_encoder(Dice& dice) {
  using encoder::Pooling;
  const int64_t heads = dice(1, 3), width = 4 * heads * dice(2, 3);
  const auto kinds = layer_kinds(width, heads);
  const auto& kind = kinds[static_cast<size_t>(dice(0, static_cast<int64_t>(kinds.size()) - 1))];
  EncoderOptions options(EncoderEmbeddingsOptions(30, width).position_rows(20),
                         TransformerEncoderOptions(kind.stack));
  if (dice.coin()) options.encoder().norm(true);
  if (dice.coin()) options.zero_padding(true);
  if (options.zero_padding() && dice.coin()) options.zero_hidden_padding(true);
  if (dice(0, 3) == 0 && !testing::mixes_all_tokens(kind.stack)) options.causal(true);
  static const Pooling kPoolings[] = {
      Pooling::None,         Pooling::TanhOfFirst,  Pooling::First,       Pooling::EndToken,
      Pooling::LargestToken, Pooling::LinearOfLast, Pooling::NormOfFirst, Pooling::LastToken,
      Pooling::Last,         Pooling::Mean};
  return options.pooling(kPoolings[dice(0, 9)]).pad_token_id(0);
}

TEST(Padding, DrawnEncodersPoolWhatTheirModulesPool) {
  const torch::NoGradGuard no_grad;
  for (unsigned number = 0; number < 200; ++number) {
    SCOPED_TRACE(number);
    Dice dice(500 + number);
    const EncoderOptions options = any_encoder(dice);
    torch::manual_seed(testing::seed(500 + number));
    auto model = drawn(Encoder(options));
    const int64_t batch = dice(1, 4), length = dice(1, 9);
    const auto ids = torch::randint(0, 30, {batch, length}, torch::kLong);
    auto tokens = torch::ones({batch, length}, torch::kLong);
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t dropped = dice(0, length - 1);
      tokens[b].narrow(0, dice(0, length - dropped), dropped).fill_(0);
    }
    auto inputs = EncoderInputs().attention_mask(tokens).output_hidden_states(dice.coin());
    const auto& transformer_xl = options.encoder().layer().transformer_xl();
    if (transformer_xl && transformer_xl->segments() && dice.coin())
      inputs.token_type_ids(torch::randint(0, 2, {batch, length}));
    const auto expected = model->forward(ids, inputs), got = freeze(model).forward(ids, inputs);
    EXPECT_TRUE(near(got.last_hidden_state, only(expected.last_hidden_state, tokens)));
    ASSERT_EQ(got.hidden_states.size(), expected.hidden_states.size());
    for (size_t i = 1; i < got.hidden_states.size(); ++i)
      EXPECT_TRUE(near(got.hidden_states[i], only(expected.hidden_states[i], tokens)));
    ASSERT_EQ(got.pooled.defined(), expected.pooled.defined());
    if (got.pooled.defined()) {
      EXPECT_TRUE(near(got.pooled, expected.pooled));
    }
  }
}

}  // namespace
}  // namespace posenc::padding_test
