// Frozen models in 8 bits whose scores of attention are in 8 bits, too: how near they are to scores
// in float32, that these are what they were without, and that a row's result depends on nothing but
// its own sequence. The arithmetic is tested in tests/kernels/isa/attention_sequence_test.cpp.

#include <gtest/gtest.h>

#include <limits>

#include "inference/layer_kinds.h"
#include "inference/small_encoder.h"
#include "kernels/int8.h"
#include "modules/drawn_module.h"
#include "posenc/inference/score.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "support/compare.h"
#include "support/threads.h"

namespace posenc::testing {
namespace {

constexpr int64_t kLeastKeys = kernels::int8::kLeastScoredKeys, kSequences = 3;
// Of the norm of the result. The scores of drawn weights have a deviation of about 5.
constexpr double kMostOfScores = 0.1;

FreezeOptions scoring(bool in_8_bits = true) {
  return FreezeOptions().weights(WeightDtype::Int8).int8_scores(in_8_bits);
}

// Of the layers that the other tests have, and of those whose attention has more options.
std::vector<LayerKind> kinds_of_attention() {
  auto all = layer_kinds(32, 2);
  const auto layer = TransformerLayerOptions(32, 2).d_ff(48).dropout(0.0);
  const auto add = [&](const std::string& name, const TransformerLayerOptions& options) {
    all.push_back({name, TransformerEncoderOptions(options, 2)});
  };
  const RotaryEmbeddingOptions rotary(rotary_preset("llama", 16));
  add("rotary", TransformerLayerOptions(layer).rotary(rotary));
  add("grouped keys", TransformerLayerOptions(layer).num_kv_heads(1));
  add("norms of queries and keys", TransformerLayerOptions(layer)
                                       .norm_kind(NormKind::RMS)
                                       .head_dim(20)
                                       .qk_norm(true)
                                       .attention_scale(0.3));
  add("window", TransformerLayerOptions(layer).rotary(rotary).num_kv_heads(1).window(20));
  add("clamped distances", TransformerLayerOptions(layer).relative(relative::Clamp{20, 9}));
  return all;
}

bool has_attention(const LayerKind& kind) { return !mixes_all_tokens(kind.stack); }
// In these a token's neighbours may be padding, which is computed then.
bool sees_padding(const LayerKind& kind) {
  const TransformerLayerOptions& layer = kind.stack.layer();
  return layer.conformer() || layer.mixing() != Mixing::Attention;
}

struct SegmentedStack {
  explicit SegmentedStack(const LayerKind& kind) : module(drawn(TransformerEncoder(kind.stack))) {
    const auto& terms = kind.stack.layer().transformer_xl();
    has_segments = terms && terms->segments();
  }
  torch::Tensor run(const FreezeOptions& options, const torch::Tensor& x,
                    const AttentionMask& mask = {}) const {
    return run(posenc::freeze(module, options), x, mask);
  }
  torch::Tensor run(const FrozenTransformerEncoder& frozen, const torch::Tensor& x,
                    const AttentionMask& mask = {}) const {
    TransformerEncoderRecord record;
    const auto segments =
        has_segments ? torch::zeros({x.size(0), x.size(1)}, torch::kLong) : torch::Tensor();
    return frozen.forward_with(x, mask, record, {}, segments);
  }

  TransformerEncoder module;
  bool has_segments = false;
};

TEST(Int8Scores, AreOfSequencesWithEnoughKeys) {
  const torch::NoGradGuard no_grad;
  for (const LayerKind& kind : kinds_of_attention()) {
    SCOPED_TRACE(kind.name);
    const SegmentedStack stack(kind);
    const auto frozen = posenc::freeze(stack.module, scoring()),
               without = posenc::freeze(stack.module, scoring(false));
    for (const int64_t length : {int64_t{1}, kLeastKeys - 1, kLeastKeys, int64_t{150}}) {
      const auto x = torch::randn({kSequences, length, 32});
      const auto got = stack.run(frozen, x), wide = stack.run(without, x);
      EXPECT_EQ(torch::equal(got, wide), length < kLeastKeys || !has_attention(kind)) << length;
      EXPECT_LT(distance(got, wide), kMostOfScores);
    }
  }
}

TEST(Int8Scores, DependOnTheirSequenceAlone) {
  const torch::NoGradGuard no_grad;
  for (const LayerKind& kind : kinds_of_attention()) {
    SCOPED_TRACE(kind.name);
    const SegmentedStack stack(kind);
    const auto frozen = posenc::freeze(stack.module, scoring());
    // Of 130 tokens, of as many as are scored in 8 bits, of one fewer, and of so few that products
    // in float32, such as those of a convolution, could have kernels of their own.
    const std::vector<int64_t> lengths = {130, kLeastKeys, kLeastKeys - 1, 4, 1};
    const auto count = static_cast<int64_t>(lengths.size());
    const auto x = torch::randn({count, 130, 32});
    auto tokens = torch::zeros({count, 130}, torch::kLong);
    for (int64_t b = 0; b < count; ++b) tokens[b].narrow(0, 0, lengths[b]).fill_(1);
    const auto mask = AttentionMask::key_padding(tokens);
    const auto all = stack.run(frozen, x, mask), unpadded = stack.run(frozen, x);
    for (const int threads : {1, 2, 3, 4}) {
      const Threads set(threads);
      EXPECT_TRUE(bit_equal(stack.run(frozen, x, mask), all)) << threads;
    }
    for (int64_t b = 0; b < count && has_attention(kind); ++b) {
      EXPECT_TRUE(bit_equal(stack.run(frozen, x.narrow(0, b, 1)), unpadded.narrow(0, b, 1)));
      if (sees_padding(kind)) continue;
      const auto alone = x.narrow(0, b, 1).narrow(1, 0, lengths[b]);
      EXPECT_TRUE(bit_equal(stack.run(frozen, alone),
                            all.narrow(0, b, 1).narrow(1, 0, lengths[b]).contiguous()));
    }
  }
}

// Also of padding that is computed, because tokens see it.
TEST(Int8Scores, PaddingDoesNotCount) {
  const torch::NoGradGuard no_grad;
  for (const LayerKind& kind : kinds_of_attention()) {
    if (!has_attention(kind)) continue;
    SCOPED_TRACE(kind.name);
    const SegmentedStack stack(kind);
    const auto x = torch::randn({2, 130, 32});
    auto tokens = torch::zeros({2, 130}, torch::kLong);
    tokens[0].narrow(0, 0, kLeastKeys).fill_(1);
    tokens[1].narrow(0, 0, kLeastKeys - 1).fill_(1);
    const auto mask = AttentionMask::key_padding(tokens);
    const auto got = stack.run(scoring(), x, mask), wide = stack.run(scoring(false), x, mask);
    for (const int64_t b : {0, 1}) {
      const auto rows = [&](const torch::Tensor& of) { return of[b].narrow(0, 0, kLeastKeys - b); };
      EXPECT_EQ(torch::equal(rows(got), rows(wide)), b == 1) << b;
    }
  }
}

// A row whose pooled token is masked makes the encoder compute the padding of all.
TEST(Int8Scores, OfEncodersThatPoolPadding) {
  const torch::NoGradGuard no_grad;
  for (const auto pooling : {encoder::Pooling::TanhOfFirst, encoder::Pooling::Mean}) {
    const auto layer = TransformerEncoderLayerOptions(48, 4).d_ff(100);
    const EncoderEmbeddingsOptions embeddings = EncoderEmbeddingsOptions(50, 48).position_rows(128);
    const auto frozen =
        freeze(small_encoder(EncoderOptions(embeddings, {layer, 2}).pooling(pooling)), scoring());
    const auto ids = torch::randint(3, 50, {2, 100}, torch::kLong);
    auto kept = torch::ones({2, 100}, torch::kLong);
    kept[0].narrow(0, 30, 70).zero_();
    kept[1].narrow(0, 0, 10).zero_();
    const auto all = frozen.forward(ids, EncoderInputs().attention_mask(kept)).last_hidden_state;
    const auto alone = frozen.forward(ids.narrow(0, 0, 1).narrow(1, 0, 30)).last_hidden_state;
    EXPECT_TRUE(bit_equal(all[0].narrow(0, 0, 30).contiguous(), alone[0].contiguous()));
  }
}

TEST(Int8Scores, TakeMasks) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({kSequences, 100, 32});
  const auto bias = torch::randn({kSequences, 1, 100, 100});
  for (const LayerKind& kind : kinds_of_attention()) {
    if (!has_attention(kind)) continue;
    SCOPED_TRACE(kind.name);
    const SegmentedStack stack(kind);
    for (const auto& mask : {AttentionMask::causal(), AttentionMask::window(30),
                             AttentionMask::additive(bias.masked_fill(bias < -1.0, -INFINITY)) &
                                 AttentionMask::causal()}) {
      const auto got = stack.run(scoring(), x, mask), wide = stack.run(scoring(false), x, mask);
      EXPECT_FALSE(torch::equal(got, wide));
      EXPECT_LT(distance(got, wide), kMostOfScores);
    }
  }
}

// More than a copy of the values is made for.
TEST(Int8Scores, OfLongSequences) {
  const torch::NoGradGuard no_grad;
  const SegmentedStack stack(
      {"", TransformerEncoderOptions(TransformerLayerOptions(32, 2).d_ff(16), 1)});
  const auto frozen = posenc::freeze(stack.module, scoring());
  const auto x = torch::randn({2, 900, 32});
  const auto got = stack.run(frozen, x);
  EXPECT_LT(distance(got, stack.run(scoring(false), x)), kMostOfScores);
  EXPECT_TRUE(bit_equal(stack.run(frozen, x.narrow(0, 1, 1)), got.narrow(0, 1, 1)));
}

TEST(Int8Scores, OfDecoders) {
  const torch::NoGradGuard no_grad;
  Dice dice(21);
  for (unsigned seed = 0; seed < 12; ++seed) {
    auto model = any_model(dice, seed);
    if (model->options.d_model() < 16) continue;  // a norm of few numbers magnifies differences
    const auto frozen = freeze(model, scoring()), without = freeze(model, scoring(false));
    SCOPED_TRACE(printed(frozen));
    // Of the 64 positions that there are: sources, and every other time targets.
    const int64_t targets = seed % 2 == 0 ? kLeastKeys : 20;
    const auto src = any_ids(dice, 4, kLeastKeys, true), tgt = any_ids(dice, 4, targets, false);
    const auto mask = AttentionMask::padding(src, kPad), causal = AttentionMask::causal();
    const auto memory = frozen.encode(src, mask);
    EXPECT_FALSE(torch::equal(memory, without.encode(src, mask)));
    EXPECT_LT(distance(memory, without.encode(src, mask)), 2 * kMostOfScores);
    const auto decoded = frozen.decode(tgt, memory, causal, mask);
    const auto wide = without.decode(tgt, memory, causal, mask);
    EXPECT_FALSE(torch::equal(decoded, wide)) << "the first source has enough keys";
    EXPECT_LT(distance(decoded, wide), 2 * kMostOfScores);
    for (int64_t b = 0; b < 4; ++b) {
      const auto alone = src.narrow(0, b, 1);
      const auto its_mask = AttentionMask::padding(alone, kPad);
      EXPECT_TRUE(bit_equal(frozen.encode(alone, its_mask), memory.narrow(0, b, 1)));
      EXPECT_TRUE(
          bit_equal(frozen.decode(tgt.narrow(0, b, 1), memory.narrow(0, b, 1), causal, its_mask),
                    decoded.narrow(0, b, 1)));
    }
    for (const int threads : {1, 2, 3, 4}) {
      const Threads set(threads);
      EXPECT_TRUE(bit_equal(frozen.encode(src, mask), memory));
      EXPECT_TRUE(bit_equal(frozen.decode(tgt, memory, causal, mask), decoded));
    }
    // A step's attention is float32.
    const auto search = GenerateOptions(kBegin, kEnd).max_new_tokens(5);
    const auto found = generate(frozen, src, mask, search);
    ASSERT_EQ(found.size(), 4U);
    for (const auto& hypotheses : found) EXPECT_TRUE(std::isfinite(hypotheses[0].score));
  }
}

// Targets and sources that are padded in a batch have the bits that they have alone.
TEST(Int8Scores, OfDecodersDoNotDependOnPadding) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(testing::seed(23));
  Transformer model(TransformerOptions(40, 40).d_model(64).num_heads(2).d_ff(96).max_len(120));
  model->eval();
  const auto frozen = freeze(model, scoring());
  const auto causal = AttentionMask::causal();
  auto src = torch::randint(3, 40, {2, 100}, torch::kLong),
       tgt = torch::randint(3, 40, {2, 90}, torch::kLong);
  constexpr int64_t kSource = 30, kTarget = 40;
  src[0].narrow(0, kSource, 100 - kSource).fill_(kPad);
  tgt[0].narrow(0, kTarget, 90 - kTarget).fill_(kPad);
  const auto mask = AttentionMask::padding(src, kPad);
  const auto own_src = src.narrow(0, 0, 1).narrow(1, 0, kSource),
             own_tgt = tgt.narrow(0, 0, 1).narrow(1, 0, kTarget);
  const auto alone = frozen.decode(own_tgt, frozen.encode(own_src), causal);
  const auto all = frozen.decode(tgt, frozen.encode(src, mask),
                                 causal & AttentionMask::padding(tgt, kPad), mask);
  EXPECT_TRUE(bit_equal(all[0].narrow(0, 0, kTarget).contiguous(), alone[0].contiguous()));

  const auto list = [](const torch::Tensor& ids) {
    return std::vector<int64_t>(ids.const_data_ptr<int64_t>(),
                                ids.const_data_ptr<int64_t>() + ids.numel());
  };
  const std::vector<int64_t> target = list(own_tgt.contiguous()), longer = list(tgt[1]);
  EXPECT_EQ(score(frozen, src, mask, {target, longer})[0], score(frozen, own_src, {}, {target})[0]);
  EXPECT_EQ(score_with_attention(frozen, src, mask, {target, longer})[0].log_probabilities,
            score_with_attention(frozen, own_src, {}, {target})[0].log_probabilities);
}

TEST(Int8Scores, WhatIsNotFiniteStaysInItsSequence) {
  const torch::NoGradGuard no_grad;
  const auto frozen = posenc::freeze(
      drawn(TransformerEncoder(TransformerEncoderOptions(TransformerLayerOptions(32, 2), 2))),
      scoring());
  const auto x = torch::randn({3, 90, 32});
  const auto expected = frozen.forward(x);
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto other = x.clone();
    other[1][70][3] = value;
    const auto got = frozen.forward(other);
    EXPECT_TRUE(got[1].isnan().all().item<bool>());
    for (const int64_t b : {0, 2}) EXPECT_TRUE(bit_equal(got[b], expected[b]));
  }
}

TEST(Int8Scores, OfRowsOfZerosAndOfVerySmallNumbers) {
  const torch::NoGradGuard no_grad;
  for (const double size : {0.0, 1e-40, 1e-20}) {
    auto module = drawn(TransformerEncoder(
        TransformerEncoderOptions(TransformerLayerOptions(32, 2).qkv_bias(false), 1)));
    module->layers[0]->as<TransformerEncoderLayerImpl>()->self_attn->in_proj_weight.mul_(size);
    const auto x = torch::randn({2, 80, 32});
    const auto got = posenc::freeze(module, scoring()).forward(x);
    EXPECT_TRUE(got.isfinite().all().item<bool>());
    // All weights are equal.
    EXPECT_TRUE(bit_equal(got, posenc::freeze(module, scoring(false)).forward(x))) << size;
  }
}

TEST(Int8Scores, AreNotComputedWhereTheOptionHasNoMeaning) {
  const torch::NoGradGuard no_grad;
  const auto module =
      drawn(TransformerEncoder(TransformerEncoderOptions(TransformerLayerOptions(32, 2), 2)));
  const auto x = torch::randn({2, 100, 32});
  for (const auto weights : {WeightDtype::Float32, WeightDtype::BFloat16, WeightDtype::Int8}) {
    for (const auto compute : {ComputeDtype::Float32, ComputeDtype::BFloat16}) {
      const auto options = FreezeOptions().weights(weights).compute(compute);
      const auto with = posenc::freeze(module, FreezeOptions(options).int8_scores(true)),
                 without = posenc::freeze(module, FreezeOptions(options).int8_scores(false));
      const bool has_meaning = weights == WeightDtype::Int8 && compute == ComputeDtype::Float32;
      EXPECT_EQ(torch::equal(with.forward(x), without.forward(x)), !has_meaning);
      EXPECT_EQ(printed(without).find("int8_scores=false") != std::string::npos, has_meaning);
      EXPECT_EQ(printed(with).find("int8_scores"), std::string::npos);
    }
  }
}

// Cosines times up to 100 would lose too much.
TEST(Int8Scores, OfCosinesAreFloat32) {
  const torch::NoGradGuard no_grad;
  for (const std::string type : {"swin", "swinv2"}) {
    auto encoder = drawn(Encoder(encoder_options_from_hf(
        R"({"model_type": ")" + type + R"(", "image_size": 32, "patch_size": 2, "embed_dim": 16,
            "depths": [2, 1], "num_heads": [2, 4], "window_size": 8})")));
    const auto pixels = torch::randn({2, 3, 32, 32});
    const auto got = freeze(encoder, scoring()).forward(pixels).last_hidden_state;
    const auto wide = freeze(encoder, scoring(false)).forward(pixels).last_hidden_state;
    EXPECT_EQ(torch::equal(got, wide), type == "swinv2");
    EXPECT_LT(distance(got, wide), kMostOfScores);
  }
}

}  // namespace
}  // namespace posenc::testing
