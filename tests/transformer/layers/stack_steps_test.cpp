// TransformerEncoder::step() of stacks in which some layers have a window.

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "posenc/positions/rotary/rotary_preset.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "support/compare.h"
#include "support/seed.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::Op;
using testing::within;

const std::vector<std::optional<int64_t>> kWindows = {30, std::nullopt, 600, 0};

// Layers with these windows, and what else `change` gives each.
template <typename Change>
TransformerEncoder windowed_stack(const Change& change) {
  torch::manual_seed(testing::seed(1));
  std::vector<TransformerLayerOptions> layers;
  for (const auto& window : kWindows) {
    layers.push_back(TransformerLayerOptions(16, 2).d_ff(16).norm_first(true).window(window));
    change(layers.back());
  }
  TransformerEncoder stack(TransformerEncoderOptions(layers.front(), 4).layers(layers));
  stack->eval();
  return stack;
}

std::vector<KeyValueCache> whole_caches(const TransformerEncoder& stack, int64_t capacity) {
  std::vector<KeyValueCache> caches;
  for (const auto& layer : *stack->layers)
    caches.push_back(layer->as<TransformerEncoderLayerImpl>()->self_attn->make_cache(2, capacity));
  return caches;
}

// What is dropped changes nothing but the rounding of products, whose order LibTorch chooses; with
// padding before the tokens of a row and without.
void expect_same_steps(TransformerEncoder stack) {
  const torch::NoGradGuard no_grad;
  constexpr int64_t kAll = 1400, kPrompt = 450, kBlock = 512;
  const auto x = torch::randn({2, kAll, 16});
  const auto is_token = torch::arange(kAll) >= torch::tensor({{0}, {400}});
  const auto mask_of = [&](int64_t count) {
    return AttentionMask::key_padding(is_token.narrow(1, 0, count));
  };
  auto caches = stack->make_caches(2, kAll), whole = whole_caches(stack, kAll);
  for (int64_t begin = 0, count = kPrompt, turn = 0; begin + count <= kAll; ++turn) {
    const auto part = x.narrow(1, begin, count);
    const auto out = stack->step(part, caches, mask_of(begin + count));
    const auto expected = stack->step(part, whole, mask_of(begin + count));
    begin += count;
    ASSERT_TRUE(begin < kBlock ? bit_equal(out, expected) : within(Op::Layers, out, expected))
        << begin;
    for (std::size_t i = 0; i < caches.size(); ++i) {
      const int64_t kept = caches[i].room_for(2).key.size(2);
      ASSERT_EQ(whole[i].room_for(2).key.size(2), begin);
      ASSERT_LE(kept, kWindows[i] ? *kWindows[i] + kBlock + 90 : begin);
    }
    count = turn % 5 == 1 ? 90 : turn % 3 == 0 ? 7 : 1;
  }
  // A long prompt alone leaves no more than its end.
  auto again = stack->make_caches(2, kAll);
  const auto all = mask_of(kAll);
  EXPECT_TRUE(within(Op::Layers, stack->step(x, again, all).narrow(1, 400, 1000),
                     stack->forward(x, all & AttentionMask::causal()).narrow(1, 400, 1000)));
  EXPECT_LE(again.front().room_for(2).key.size(2), *kWindows[0] + kBlock);
}

TEST(StackSteps, KeepOnlyTheirWindows) {
  expect_same_steps(windowed_stack([](TransformerLayerOptions&) {}));
  expect_same_steps(windowed_stack([](TransformerLayerOptions& own) { own.num_kv_heads(1); }));
  expect_same_steps(
      windowed_stack([](TransformerLayerOptions& own) { own.attention_softcap(4.0); }));
  expect_same_steps(windowed_stack([](TransformerLayerOptions& own) {
    own.relative(relative::Buckets{.num_buckets = 32, .max_distance = 80, .bidirectional = false});
  }));
  expect_same_steps(windowed_stack([](TransformerLayerOptions& own) {
    own.rotary(RotaryEmbeddingOptions(rotary_preset("llama", 8)));
  }));
}

TEST(StackSteps, GoOnAfterAnError) {
  auto stack = windowed_stack([](TransformerLayerOptions&) {});
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 1100, 16});
  auto caches = stack->make_caches(2, 1100);
  stack->step(x.narrow(1, 0, 1000), caches);
  auto untouched = caches;
  auto& last = *stack->layers->ptr<TransformerEncoderLayerImpl>(3);
  const auto weight = last.linear2->weight;
  last.linear2->weight = torch::zeros({16, 15});
  EXPECT_ANY_THROW(stack->step(x.narrow(1, 1000, 50), caches));
  last.linear2->weight = weight;
  EXPECT_TRUE(bit_equal(stack->step(x.narrow(1, 1000, 1), caches),
                        stack->step(x.narrow(1, 1000, 1), untouched)));
  last.options.window(7);
  EXPECT_ERROR(stack->step(x.narrow(1, 1001, 1), caches), c10::ValueError,
               "a cache with a window must be of the layer's. Got 0 for layer 3");
}

}  // namespace
}  // namespace posenc
