// Padding is packed away whatever else a mask consists of: frozen models against their modules with
// padding on the left, on the right or anywhere, combined with causal, boolean and additive masks.

#include <gtest/gtest.h>

#include <string>

#include "inference/layer_kinds.h"
#include "inference/models.h"
#include "inference/rows/packing.h"
#include "modules/drawn_module.h"
#include "posenc/inference/freeze.h"
#include "posenc/positions/relative/bias.h"
#include "support/compare.h"
#include "support/search_reference.h"
#include "support/threads.h"

namespace posenc::testing {
namespace {

enum class PaddingSide { Right, Left, Anywhere };
constexpr PaddingSide kPaddingSides[] = {PaddingSide::Right, PaddingSide::Left,
                                         PaddingSide::Anywhere};

// Bool (batch, length), true for tokens. Sequence 0 is whole, and sequence 1 has no token.
torch::Tensor any_tokens(Dice& dice, int64_t batch, int64_t length, PaddingSide side) {
  auto tokens = torch::ones({batch, length}, torch::kBool);
  if (side == PaddingSide::Anywhere) tokens = torch::rand({batch, length}) < 0.6;
  for (int64_t b = 1; b < batch && side != PaddingSide::Anywhere; ++b) {
    const int64_t dropped = dice(0, length);
    tokens[b].narrow(0, side == PaddingSide::Left ? 0 : length - dropped, dropped).fill_(false);
  }
  tokens[0].fill_(true);
  if (batch > 1) tokens[1].fill_(false);
  return tokens;
}

// Every kind of mask that may come with padding, of random contents and shapes.
std::vector<AttentionMask> masks_beside_padding(Dice& dice, int64_t batch, int64_t heads,
                                                int64_t length) {
  const auto some = [&](int64_t n) { return dice.coin() ? n : 1; };
  const std::vector<int64_t> shape = {some(batch), some(heads), some(length), some(length)};
  const auto relative =
      relative_position_bias(torch::randn({32, heads}), length, length, relative::Buckets{});
  return {AttentionMask(),
          AttentionMask::causal(),
          AttentionMask::causal(dice(1, 3)),
          AttentionMask::allowed(torch::rand(shape) < 0.7),
          AttentionMask::additive(torch::randn(shape)),
          AttentionMask::additive(relative),
          AttentionMask::additive(relative) & AttentionMask::causal()};
}

// Where no sequence is longer than the window, there is none; that changes no bit either.
TEST(Packing, BesideALongerTextThanTheWindowATextHasItsBits) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(seed(3));
  constexpr int64_t kWindow = 160, kLength = 140;
  TransformerEncoder encoder(TransformerEncoderOptions(
      TransformerLayerOptions(32, 2).d_ff(40).window(kWindow), /*num_layers=*/2));
  encoder->eval();
  for (const auto& options :
       {FreezeOptions(), FreezeOptions().weights(WeightDtype::Int8),
        FreezeOptions().weights(WeightDtype::Int8).int8_scores(false),
        FreezeOptions().weights(WeightDtype::BFloat16).compute(ComputeDtype::BFloat16)}) {
    const auto frozen = freeze(encoder, options);
    const auto x = torch::randn({2, kWindow + 1, 32});
    auto tokens = torch::ones({2, kWindow + 1}, torch::kBool);
    tokens[1].narrow(0, kLength, kWindow + 1 - kLength).fill_(false);
    const auto together = frozen.forward(x, AttentionMask::key_padding(tokens));
    const auto alone = frozen.forward(x.narrow(0, 1, 1).narrow(1, 0, kLength));
    EXPECT_TRUE(bit_equal(together[1].narrow(0, 0, kLength), alone[0]));
  }
}

TEST(Packing, EncodersDropPaddingBesideEveryMask) {
  const torch::NoGradGuard no_grad;
  for (unsigned number = 0; number < 12; ++number) {
    Dice dice(40 + number);
    torch::manual_seed(seed(number));
    const int64_t heads = dice(1, 4), batch = dice(1, 6), length = dice(1, 60);
    const int64_t width = heads * dice(1, 20);
    TransformerEncoder encoder(TransformerEncoderOptions(
        TransformerLayerOptions(width, heads).d_ff(dice(1, 90)).norm_first(dice.coin()), 2));
    encoder->eval();
    const auto frozen = freeze(encoder, FreezeOptions().gemm(kGemmBackends[number % 3]));
    const auto x = torch::randn({batch, length, width});
    const auto side = kPaddingSides[number % 3];
    const auto tokens = any_tokens(dice, batch, length, side);
    TransformerEncoder exact(std::dynamic_pointer_cast<TransformerEncoderImpl>(encoder->clone()));
    exact->to(torch::kDouble);
    const auto masks = masks_beside_padding(dice, batch, heads, length);
    for (size_t i = 0; i < masks.size(); ++i) {
      SCOPED_TRACE("model " + std::to_string(number) + ", mask " + std::to_string(i));
      const auto mask = masks[i] & AttentionMask::key_padding(tokens);
      const auto got = frozen.forward(x, mask);
      const auto best = exact->forward(x.to(torch::kDouble), mask);
      EXPECT_TRUE(within(Op::Layers, got.index({tokens}), encoder->forward(x, mask).index({tokens}),
                         best.index({tokens})));
      EXPECT_FALSE(got.index({~tokens}).any().item<bool>());
    }
  }
}

// Only tokens are computed, so they give the same bits with and without padding.
TEST(Packing, PaddingChangesNoBit) {
  const torch::NoGradGuard no_grad;
  Dice dice(5);
  torch::manual_seed(seed(5));
  TransformerEncoder encoder(TransformerEncoderOptions(TransformerLayerOptions(48, 3).d_ff(70), 2));
  encoder->eval();
  const auto frozen = freeze(encoder);
  const auto weight = torch::randn({32, 3});
  const auto tokens = any_tokens(dice, 5, 40, PaddingSide::Right);
  tokens[2].narrow(0, 0, 12).fill_(true);  // more rows than the kernel for a few
  const auto x = torch::randn({5, 40, 48});
  for (const bool is_causal : {false, true}) {
    const auto mask_for = [&](int64_t length) {
      const auto bias = relative_position_bias(weight, length, length, relative::Buckets{});
      return is_causal ? AttentionMask::causal() : AttentionMask::additive(bias);
    };
    for (const int threads : {1, 2, 3}) {
      const Threads set(threads);
      const auto all = frozen.forward(x, mask_for(40) & AttentionMask::key_padding(tokens));
      const int64_t length = tokens[2].sum().item<int64_t>();
      const auto alone = frozen.forward(x.narrow(0, 2, 1).narrow(1, 0, length), mask_for(length));
      EXPECT_TRUE(bit_equal(all.narrow(0, 2, 1).narrow(1, 0, length).contiguous(), alone));
    }
  }
}

TEST(Packing, HasPartsOfWholeSequences) {
  Dice dice(70);
  for (int number = 0; number < 50; ++number) {
    const int64_t batch = dice(0, 9), length = dice(1, 7), each = dice(1, 30);
    const inference::Packing packing(torch::rand({batch, length}) < 0.6);
    int64_t sequence = 0, row = 0;
    const auto parts = packing.parts(each);
    for (const auto& part : parts) {
      EXPECT_EQ(part.begin, sequence);
      EXPECT_EQ(part.first_row, row);
      EXPECT_LT(part.begin, part.end);
      for (; sequence < part.end; ++sequence) row += packing.lengths[sequence];
      EXPECT_EQ(part.rows, row - part.first_row);
    }
    EXPECT_EQ(sequence, batch);
    EXPECT_LE(std::ssize(parts), std::max<int64_t>(1, packing.rows / each));
  }
}

// A batch of more rows than the layers take at once, beside the same sequences one by one, with a
// mask that has something of its own for each of them.
TEST(Packing, PartsOfALargeBatchChangeNoBit) {
  const torch::NoGradGuard no_grad;
  Dice dice(6);
  torch::manual_seed(seed(6));
  const int64_t batch = 36, length = 80, width = 16;
  const auto tokens = any_tokens(dice, batch, length, PaddingSide::Right);
  const auto x = torch::randn({batch, length, width});
  const auto bias = torch::randn({batch, 1, length, length});
  const auto mask_of = [&](const TransformerEncoderOptions& stack, int64_t first, int64_t count) {
    const auto padding = AttentionMask::key_padding(tokens.narrow(0, first, count));
    return mixes_all_tokens(stack)
               ? padding
               : padding & AttentionMask::additive(bias.narrow(0, first, count));
  };
  for (const auto& [name, stack] : layer_kinds(width, 2)) {
    SCOPED_TRACE(name);
    const auto frozen = freeze(drawn(TransformerEncoder(stack)));
    for (const int threads : {1, 2}) {
      const Threads set(threads);
      TransformerEncoderRecord all;
      all.output_hidden_states = true;
      const auto got = frozen.forward_with(x, mask_of(stack, 0, batch), all);
      for (const int64_t b : {0, 1, 17, 35}) {
        TransformerEncoderRecord own;
        own.output_hidden_states = true;
        const auto alone = frozen.forward_with(x.narrow(0, b, 1), mask_of(stack, b, 1), own);
        EXPECT_TRUE(bit_equal(got.narrow(0, b, 1).contiguous(), alone)) << b;
        for (size_t i = 0; i < own.hidden_states.size(); ++i)
          EXPECT_TRUE(bit_equal(all.hidden_states[i].narrow(0, b, 1).contiguous(),
                                own.hidden_states[i].contiguous()))
              << b << ", layer " << i;
      }
    }
  }
}

// Keys of a memory without padding are numbered anew, whereas a causal mask counts all of them.
TEST(Packing, SearchesTakePaddingBesideEveryMask) {
  const torch::NoGradGuard no_grad;
  for (unsigned number = 0; number < 6; ++number) {
    SCOPED_TRACE(number);
    Dice dice(60 + number);
    auto model = any_model(dice, number);
    const auto frozen = freeze(model);
    const int64_t length = dice(2, 12);
    const auto src = any_ids(dice, 4, length, false);
    const auto tokens = any_tokens(dice, 4, length, kPaddingSides[number % 3]);
    const auto options = GenerateOptions(kBegin, kEnd).max_new_tokens(length);
    for (const auto& other : {AttentionMask::causal(), AttentionMask::causal(1),
                              AttentionMask::allowed_pairs(torch::rand({length, length}) < 0.7)}) {
      const auto mask = other & AttentionMask::key_padding(tokens);
      SearchReference reference(model, src, mask, options, Op::Scores);
      const auto plain = generate(*model, src, mask, options);
      EXPECT_TRUE(found_the_same(generate(frozen, src, mask, options), plain, reference));
    }
  }
}

}  // namespace
}  // namespace posenc::testing
