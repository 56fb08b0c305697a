// Frozen models and searches with all kinds of masks, compared with the modules.

#include <gtest/gtest.h>

#include "inference/models.h"
#include "posenc/inference/freeze.h"
#include "support/compare.h"
#include "support/search_reference.h"

namespace posenc::testing {
namespace {

TEST(FrozenMasks, EncodeEveryForm) {
  const torch::NoGradGuard no_grad;
  Dice dice(4);
  auto model = any_model(dice, 4);
  const int64_t heads = model->options.num_heads(), batch = 3, length = 5;
  const auto frozen = freeze(model);
  const auto src = any_ids(dice, batch, length, true);
  const auto mask_of = [&](at::IntArrayRef sizes) {
    const auto bits = torch::rand(sizes) < 0.4;
    return sizes.size() == 2 ? AttentionMask::blocked_pairs(bits) : AttentionMask::blocked(bits);
  };
  const auto padding = AttentionMask::padding(src, kPad);
  for (const auto& mask : {mask_of({length, length}), mask_of({batch, length, length}),
                           mask_of({batch, heads, length, length}), mask_of({1, 1, length, length}),
                           mask_of({batch, 1, length, length}) & padding,
                           AttentionMask::causal() & padding, AttentionMask::causal(2),
                           AttentionMask::additive(torch::randn({batch, heads, length, length}))}) {
    // Rows of padding are not computed.
    const auto rows =
        mask.padding_keys().defined() ? mask.padding_keys() : torch::ones_like(src, torch::kBool);
    EXPECT_TRUE(computes(frozen.encode(src, mask).index({rows}), model,
                         [&](auto& from, auto) { return from.encode(src, mask).index({rows}); }));
  }
}

// Has the shape of a padding mask but is not one: in a row whose keys are all blocked, the tokens
// are still tokens.
TEST(FrozenMasks, ABlockedRowIsNotPadding) {
  const torch::NoGradGuard no_grad;
  for (unsigned seed = 0; seed < 4; ++seed) {
    Dice dice(seed);
    auto model = any_model(dice, seed);
    const auto src = any_ids(dice, 3, 5, false);
    auto blocked = torch::zeros({3, 1, 1, 5}, torch::kBool);
    blocked[1].fill_(true);
    blocked[2].slice(-1, 3).fill_(true);
    const auto mask = AttentionMask::blocked(blocked);
    EXPECT_TRUE(computes(freeze(model).encode(src, mask), model,
                         [&](auto& from, auto) { return from.encode(src, mask); }));
  }
}

// Query i of the cross-attention is token i of the target, as in decode(): also in a search from
// which sources are removed, and in steps of several tokens.
TEST(FrozenMasks, MayDependOnTheTargetsToken) {
  const torch::NoGradGuard no_grad;
  constexpr int64_t kLength = 6;
  for (unsigned seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    auto model = any_model(dice, seed);
    while (common_heads(model->options) == 1) model = any_model(dice, seed);
    const auto frozen = freeze(model);
    const auto src = any_ids(dice, 3, kLength, true);
    const auto padding = AttentionMask::padding(src, kPad);
    const auto begin = torch::full({3, 1}, kBegin, torch::kLong);
    const auto base = GenerateOptions(kBegin, kEnd).max_new_tokens(kLength);
    for (const auto& mask :
         {AttentionMask::causal(), AttentionMask::causal(2), AttentionMask::causal() & padding,
          AttentionMask::allowed_pairs(torch::rand({kLength, kLength}) < 0.6),
          AttentionMask::additive(
              torch::randn({3, common_heads(model->options), kLength, kLength}))}) {
      const auto memory = model->encode(src, mask);
      for (const int64_t beams : {1, 3}) {
        const auto options = GenerateOptions(base).eos_ids({}).num_beams(beams);
        for (const auto& found :
             {generate(frozen, src, mask, options), generate(*model, src, mask, options)}) {
          std::vector<torch::Tensor> tokens, sums;
          for (const auto& one : found) {
            tokens.push_back(torch::tensor(one[0].tokens));
            sums.push_back(torch::tensor(one[0].score * kLength, torch::kFloat));
          }
          const auto written = torch::stack(tokens);
          const auto tgt = torch::cat({begin, written.narrow(1, 0, kLength - 1)}, 1);
          const auto logits = model->decode(tgt, memory, AttentionMask::causal(), mask);
          const auto right = logits.log_softmax(2).gather(2, written.unsqueeze(2)).sum({1, 2});
          EXPECT_TRUE(within(Op::Scores, torch::stack(sums), right));
        }
      }
      const auto tgt = any_ids(dice, 3, kLength, false);
      auto cache = model->start(memory, kLength, mask);
      for (int64_t i = 0; i < kLength; i += 2)
        EXPECT_TRUE(
            computes(model->step(tgt.narrow(1, i, 2), cache), model, [&](auto& from, auto dtype) {
              return from.decode(tgt, memory.to(dtype), AttentionMask::causal(), mask)
                  .select(1, i + 1);
            }));
    }
    for (const auto& mask : {AttentionMask::causal(), AttentionMask::causal() & padding}) {
      const auto options =
          GenerateOptions(base).eos_ids({kEnd, 5, 7, 11}).num_beams(2).num_return_sequences(2);
      SearchReference reference(model, src, mask, options, Op::Scores);
      const auto plain = generate(*model, src, mask, options);
      EXPECT_TRUE(found_the_same(generate(frozen, src, mask, options), plain, reference));
      for (int64_t b = 0; b < 3; ++b) EXPECT_TRUE(reference.may_find(b, plain[b]));
    }
  }
}

}  // namespace
}  // namespace posenc::testing
