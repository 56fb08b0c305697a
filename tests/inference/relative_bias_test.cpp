// Frozen stacks with a relative position bias, widths of heads, scales, gates and kinds of norms of
// their own, beside the modules.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>

#include "inference/models.h"
#include "inference/small_encoder.h"
#include "posenc/inference/generate.h"
#include "posenc/positions/sinusoid/preset.h"
#include "support/compare.h"
#include "support/threads.h"

namespace posenc::testing {
namespace {

relative::Index any_index(Dice& dice, bool bidirectional) {
  if (dice(0, 3) == 0) return relative::Clamp{dice(0, 4), dice(0, 4)};
  const int64_t buckets = 2 * dice(2, 8);
  return relative::Buckets{buckets, buckets + dice(1, 20), bidirectional};
}

// Few heads with wide rows, so that panels of queries are met, and options that T5 has.
TransformerLayerOptions any_layer(Dice& dice, int64_t d_model, bool norm_first) {
  static const Activation kActivations[] = {Activation::ReLU, Activation::GELU,
                                            Activation::GELUTanh, Activation::SiLU,
                                            Activation::Softsign};
  const int64_t heads = 2 * dice(1, 2);
  TransformerLayerOptions layer(d_model, heads);
  layer.d_ff(dice(1, 40)).dropout(0.0).norm_first(norm_first).bias(dice.coin());
  layer.head_dim(dice(1, 20)).num_kv_heads(dice.coin() ? heads : heads / 2);
  layer.norm_kind(dice.coin() ? NormKind::RMS : NormKind::Layer);
  layer.feed_forward(dice.coin() ? FeedForward::Gated : FeedForward::Plain);
  layer.activation(kActivations[dice(0, 4)]);
  if (dice.coin()) layer.attention_scale(1.0);
  return layer;
}

relative::Alibi any_alibi(Dice& dice) {
  static const relative::Slopes kSlopes[] = {relative::Slopes::Bloom, relative::Slopes::Mpt,
                                             relative::Slopes::XTransformers};
  return {.slopes = kSlopes[dice(0, 2)], .bias_max = 5.0, .counts_tokens = dice.coin()};
}

// A table of each layer, one of all, or ALiBi.
template <typename Stack>
Stack with_index(Dice& dice, TransformerLayerOptions layer, bool bidirectional) {
  const relative::Index index = any_index(dice, bidirectional);
  const int64_t kind = dice(0, 2);
  if (kind == 0) layer.relative(index);
  Stack stack(layer, dice(1, 3));
  stack.norm(dice.coin());
  if (kind == 1) stack.relative(index);
  if (kind == 2) stack.alibi(any_alibi(dice));
  return stack;
}

// None, at times, or random slopes, which may be different on both sides of a query by an offset.
AttentionMask any_slopes(Dice& dice, int64_t heads) {
  if (dice.coin()) return {};
  const auto slopes = AttentionMask::slopes(torch::rand({heads}));
  return dice.coin() ? slopes : slopes.after(dice(1, 5));
}

template <typename Module>
Module with_own_weights(Module module) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module->parameters())
    parameter.copy_(torch::randn_like(parameter) * 0.3 + (parameter.dim() == 1 ? 1.0 : 0.0));
  module->eval();
  return module;
}

// Padding on either side, or holes.
torch::Tensor kept_tokens(Dice& dice, int64_t batch, int64_t length) {
  torch::Tensor tokens = torch::zeros({batch, length}, torch::kBool);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t count = dice(1, length);
    tokens[b].narrow(0, dice.coin() ? 0 : length - count, count).fill_(true);
  }
  if (dice(0, 2) == 0) tokens = tokens.logical_and(torch::rand({batch, length}) < 0.7);
  tokens.select(1, dice(0, length - 1)).fill_(true);
  return tokens;
}

TEST(FrozenRelativeBias, OfAnEncoderIsTheModules) {
  const torch::NoGradGuard no_grad;
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    torch::manual_seed(testing::seed(seed));
    auto layer = any_layer(dice, dice(8, 24), dice.coin());
    if (dice(0, 2) == 0) layer.window(dice(0, 9));
    auto encoder = with_own_weights(
        TransformerEncoder(with_index<TransformerEncoderOptions>(dice, layer, dice.coin())));
    const int64_t batch = dice(1, 3), length = dice(0, 3) == 0 ? dice(90, 130) : dice(1, 30);
    const auto x = torch::randn({batch, length, layer.d_model()});
    AttentionMask mask;
    torch::Tensor tokens = torch::ones({batch, length}, torch::kBool);
    if (dice.coin()) {
      tokens = kept_tokens(dice, batch, length);
      mask = AttentionMask::key_padding(tokens);
    }
    if (dice(0, 2) == 0) mask = mask & AttentionMask::causal();
    if (dice(0, 2) == 0)
      mask = mask & AttentionMask::additive_pairs(torch::randn({length, length}));
    mask = mask & any_slopes(dice, layer.num_heads());
    const auto kept = tokens.unsqueeze(-1).to(torch::kFloat);
    const auto backend = kGemmBackends[dice(0, 2)];
    const auto frozen = freeze(encoder, FreezeOptions().gemm(backend));
    const auto got = frozen.forward(x, mask) * kept;
    EXPECT_TRUE(within(Op::Layers, got, encoder->forward(x, mask) * kept));
    if (backend != GemmBackend::Native) continue;  // LibTorch's sums depend on the threads
    const Threads one(1);
    EXPECT_TRUE(bit_equal(frozen.forward(x, mask) * kept, got));
  }
}

Transformer any_t5(Dice& dice) {
  const int64_t d_model = 2 * dice(4, 12);
  TransformerOptions options(20, 20);
  options.num_heads(1).d_model(d_model).num_encoder_layers(1).num_decoder_layers(1).max_len(64);
  Transformer model(options);
  const bool norm_first = dice.coin();
  const auto encoder =
      with_index<TransformerEncoderOptions>(dice, any_layer(dice, d_model, norm_first), true);
  const auto decoder =
      with_index<TransformerDecoderOptions>(dice, any_layer(dice, d_model, norm_first), false);
  model->encoder = model->replace_module("encoder", TransformerEncoder(encoder));
  model->decoder = model->replace_module("decoder", TransformerDecoder(decoder));
  if (dice(0, 3) == 0) {  // beside a relative bias as well, when it is set later
    model->encoder->options.alibi(any_alibi(dice));
    model->decoder->options.alibi(any_alibi(dice));
  }
  return with_own_weights(model);
}

TEST(FrozenRelativeBias, OfADecoderIsTheModules) {
  const torch::NoGradGuard no_grad;
  for (unsigned seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    torch::manual_seed(testing::seed(seed));
    auto model = any_t5(dice);
    const auto frozen = freeze(model, FreezeOptions().gemm(kGemmBackends[dice(0, 2)]));
    const auto src = any_ids(dice, dice(1, 4), dice(1, 12), dice.coin());
    const auto tgt = any_ids(dice, src.size(0), dice(1, 20), false);
    const auto mask = AttentionMask::padding(src, kPad);
    const auto memory = model->encode(src, mask);
    const int64_t heads = model->decoder->options.layer().num_heads();
    auto own = AttentionMask::causal() & any_slopes(dice, heads);
    if (dice.coin()) {
      const auto tokens = kept_tokens(dice, tgt.size(0), tgt.size(1));
      tokens.select(1, 0).fill_(true);  // that every query sees
      own = own & AttentionMask::key_padding(tokens);
    }
    const auto cross = mask & any_slopes(dice, heads);
    EXPECT_TRUE(within(Op::Layers, frozen.decode(tgt, memory, own, cross),
                       model->decode(tgt, memory, own, cross)));
  }
}

// A step of the frozen decoder has the bias of its place: forced tokens get the scores that the
// whole sequence gives them.
TEST(FrozenRelativeBias, OfStepsIsThatOfTheWholeSequence) {
  const torch::NoGradGuard no_grad;
  int64_t most = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    torch::manual_seed(testing::seed(seed));
    auto model = any_t5(dice);
    const auto frozen = freeze(model);
    const auto src = any_ids(dice, dice(1, 3), dice(1, 12), dice.coin());
    const int64_t heads = model->decoder->options.layer().num_heads();
    const bool same_heads = heads == model->encoder->options.layer().num_heads();
    const AttentionMask slopes = same_heads ? any_slopes(dice, heads) : AttentionMask();
    const auto mask = AttentionMask::padding(src, kPad) & slopes;
    auto options = GenerateOptions(kBegin, kEnd).max_new_tokens(dice(2, 24)).length_penalty(0.0);
    options.num_beams(dice(1, 3));
    for (const auto& found :
         {generate(frozen, src, mask, options), generate(*model, src, mask, options)}) {
      ASSERT_EQ(static_cast<int64_t>(found.size()), src.size(0));
      for (int64_t b = 0; b < src.size(0); ++b) {
        const auto& best = found[static_cast<size_t>(b)].front();
        std::vector<int64_t> given = {kBegin};
        given.insert(given.end(), best.tokens.begin(), best.tokens.end() - 1);
        const auto row = src.narrow(0, b, 1);
        const auto logits =
            model->forward(row, torch::tensor(given).unsqueeze(0),
                           AttentionMask::padding(row, kPad) & slopes, AttentionMask::causal());
        const auto scores =
            torch::log_softmax(logits[0], -1).gather(1, torch::tensor(best.tokens).unsqueeze(1));
        EXPECT_NEAR(best.score, scores.sum().item<double>(), 2e-4);
        most = std::max<int64_t>(most, static_cast<int64_t>(best.tokens.size()));
      }
    }
  }
  EXPECT_GT(most, 10) << "targets that all are short would prove little";
}

// Of grids of any sizes, one after another, from a table of each layer, one of all, or both.
TEST(FrozenGridBias, IsTheModules) {
  const torch::NoGradGuard no_grad;
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    torch::manual_seed(testing::seed(seed));
    TransformerLayerOptions layer(8, 2);
    const relative::Grid own = {dice(1, 5), dice(1, 5)};
    const int64_t kind = dice(0, 2);
    layer.d_ff(9).norm_first(dice.coin());
    if (kind != 1) layer.grid_bias(own);
    TransformerEncoderOptions options(layer, dice(1, 3));
    if (kind != 0) options.grid_bias(own);
    auto encoder = with_own_weights(TransformerEncoder(options));
    const auto frozen = freeze(encoder);
    for (const relative::Grid grid : {own, relative::Grid{dice(1, 8), dice(1, 8)}, own}) {
      const int64_t length = 1 + grid.height * grid.width;
      const auto x = torch::randn({2, length, 8});
      AttentionMask mask;
      if (dice.coin()) mask = AttentionMask::additive_pairs(torch::randn({length, length}));
      TransformerEncoderRecord record;
      const auto expected = encoder->forward_with(x, mask, record, {}, {}, {}, grid);
      EXPECT_TRUE(within(Op::Layers, frozen.forward_with(x, mask, record, {}, {}, grid), expected));
      auto other = with_own_weights(TransformerEncoder(options));
      EXPECT_FALSE(bit_equal(other->forward_with(x, mask, record, {}, {}, {}, grid), expected));
    }
    TransformerEncoderRecord record;
    const relative::Grid wrong = {own.height + 1, own.width};
    const auto x = torch::randn({1, 1 + own.height * own.width, 8});
    EXPECT_ERROR(frozen.forward_with(x, {}, record, {}, {}, wrong), c10::ValueError,
                 "a sequence must have a class token and the patches of the grid");
    EXPECT_ERROR(encoder->forward_with(x, {}, record, {}, {}, {}, wrong), c10::ValueError,
                 "a sequence must have a class token and the patches of the grid");
  }
}

// The heads of a layer with a convolution may be others than the stack's.
TEST(FrozenRelativeBias, SlopesOfAMaskMustBeOfTheHeadsOfEachLayer) {
  const auto plain = TransformerLayerOptions(16, 2).d_ff(12);
  const auto other = TransformerLayerOptions(16, 4).d_ff(12).mixing(Mixing::Convolution);
  auto encoder = with_own_weights(
      TransformerEncoder(TransformerEncoderOptions(plain, 2).layers({plain, other})));
  const auto frozen = freeze(encoder);
  const auto x = torch::randn({2, 9, 16});
  EXPECT_TRUE(within(Op::Layers, frozen.forward(x), encoder->forward(x).detach()));
  const auto mask = AttentionMask::slopes(torch::ones({2}));
  constexpr const char* kWhy = "slopes() takes a slope for each of the 4 heads. Got 2";
  EXPECT_ERROR(frozen.forward(x, mask), c10::ValueError, kWhy);
  EXPECT_ERROR(encoder->forward(x, mask), c10::ValueError, kWhy);
}

TEST(FrozenAlibi, ExcludesRelativeBiases) {
  TransformerEncoderOptions options(TransformerLayerOptions(8, 2), 1);
  options.alibi(relative::Alibi{}).relative(relative::Buckets{});
  EXPECT_ERROR(TransformerEncoderImpl{options}, c10::ValueError,
               "[TransformerEncoder] alibi must be without a relative position bias");
}

// Layers with positions of another kind have the slopes of a mask as well.
TEST(FrozenRelativeBias, SlopesOfAMaskAreAddedToOtherPositions) {
  const torch::NoGradGuard no_grad;
  const auto layer = [] { return TransformerLayerOptions(8, 2).d_ff(12); };
  const auto terms = [](bool keys, bool queries) {
    return DisentangledOptions(6).content_to_position(keys).position_to_content(queries);
  };
  const TransformerXLOptions transformer_xl(preset("transformer_xl", 8));
  for (const TransformerLayerOptions& own :
       {layer().disentangled(terms(true, false)), layer().disentangled(terms(true, true)),
        layer().qkv_bias(false).out_bias(false).transformer_xl(transformer_xl),
        layer().conformer(ConformerOptions(3)).transformer_xl(transformer_xl),
        layer().conformer(ConformerOptions(3))}) {
    auto encoder = with_own_weights(TransformerEncoder(TransformerEncoderOptions(own, 2)));
    const auto frozen = freeze(encoder);
    const auto x = torch::randn({2, 9, 8});
    const auto mask = AttentionMask::slopes(torch::tensor({0.4, 0.9}));
    EXPECT_TRUE(within(Op::Layers, frozen.forward(x, mask), encoder->forward(x, mask)));
    EXPECT_FALSE(torch::allclose(encoder->forward(x), encoder->forward(x, mask), 1e-3, 1e-3));
  }
}

TEST(FrozenRelativeBias, ATableThatChangesIsNoticed) {
  auto encoder = with_own_weights(TransformerEncoder(
      TransformerEncoderOptions(TransformerLayerOptions(8, 2), 1).relative(relative::Buckets{})));
  const auto frozen = freeze(encoder);
  const torch::NoGradGuard no_grad;
  encoder->relative_attention_bias->weight.add_(1.0);
  EXPECT_ERROR(frozen.forward(torch::randn({1, 3, 8})), c10::Error,
               "other values in relative_attention_bias.weight");
}

// Without a grid, the table of each layer is for its own.
TEST(FrozenGridBias, OfLayersMayBeOfTwoGrids) {
  const torch::NoGradGuard no_grad;
  const auto layer = [](relative::Grid grid) {
    return TransformerLayerOptions(8, 2).d_ff(12).grid_bias(grid);
  };
  const auto wide = layer({2, 3}), high = layer({3, 2});
  auto encoder =
      with_own_weights(TransformerEncoder(TransformerEncoderOptions(high, 2).layers({high, wide})));
  const auto frozen = freeze(encoder);
  const auto x = torch::randn({2, 7, 8});
  const auto expected = encoder->forward(x);
  EXPECT_TRUE(within(Op::Layers, frozen.forward(x), expected));
  TransformerEncoderRecord record;
  const relative::Grid of_all = {3, 2};
  EXPECT_TRUE(within(Op::Layers, frozen.forward_with(x, {}, record, {}, {}, of_all),
                     encoder->forward_with(x, {}, record, {}, {}, {}, of_all)));
  EXPECT_TRUE(within(Op::Layers, frozen.forward(x), expected));
}

// What a table has for tokens that may not see each other does not count: a NaN, or inf, at a
// distance at which none does. Of a table of the stack, and of each layer.
class FrozenBiasBesideMasks : public ::testing::TestWithParam<float> {};
INSTANTIATE_TEST_SUITE_P(Numbers, FrozenBiasBesideMasks, ::testing::Values(NAN, INFINITY));

TEST_P(FrozenBiasBesideMasks, IsNotSeenWhereScoresAreNotAllowed) {
  const torch::NoGradGuard no_grad;
  const int64_t length = 70;
  const auto x = torch::randn({2, length, 8}), positions = torch::arange(length);
  const auto near = AttentionMask::allowed_pairs((positions.unsqueeze(1) - positions).abs() < 4);
  auto tokens = torch::ones({2, length}, torch::kBool);
  tokens[0].slice(0, 61).fill_(false);
  tokens[1].slice(0, 5, 60, 9).fill_(false);
  const AttentionMask masks[] = {
      near, near & AttentionMask::key_padding(tokens),
      near & AttentionMask::additive_pairs(torch::randn({length, length}))};
  for (const bool is_shared : {true, false}) {
    SCOPED_TRACE(is_shared);
    TransformerLayerOptions layer = TransformerLayerOptions(8, 2).d_ff(12).dropout(0.0);
    if (!is_shared) layer.relative(relative::Clamp{5, 5});
    TransformerEncoderOptions options(layer, 2);
    if (is_shared) options.relative(relative::Clamp{5, 5});
    auto encoder = with_own_weights(TransformerEncoder(options));
    for (const auto& item : encoder->named_parameters()) {
      if (!item.key().ends_with("relative_attention_bias.weight")) continue;
      item.value().slice(0, 0, 2).fill_(GetParam());  // distances of 4 and more
      item.value().slice(0, 9).fill_(GetParam());
    }
    const auto frozen = freeze(encoder);
    for (const AttentionMask& mask : masks) {
      const auto kept = mask.padding_keys().defined() ? tokens : torch::ones_like(tokens);
      const auto expected = encoder->forward(x, mask).index({kept});
      EXPECT_FALSE(expected.isnan().any().item<bool>());
      EXPECT_TRUE(within(Op::Layers, frozen.forward(x, mask).index({kept}), expected));
    }
    const auto all = frozen.forward(x, {});
    EXPECT_TRUE(all.isnan().all().item<bool>()) << "where they may";
  }
}

// Slopes may overflow at a distance at which no score is allowed.
TEST(FrozenRelativeBias, SlopesBesideScoresThatAreNotAllowedAreNotSeen) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 9, 8}), positions = torch::arange(9);
  const auto mask = AttentionMask::slopes(torch::full({2}, -2e38)) &
                    AttentionMask::allowed_pairs((positions.unsqueeze(1) - positions).abs() < 2);
  TransformerEncoder encoder(TransformerEncoderOptions(
      TransformerLayerOptions(8, 2).d_ff(12).dropout(0.0), /*num_layers=*/2));
  const auto expected = encoder->forward(x, mask);
  EXPECT_FALSE(expected.isnan().any().item<bool>());
  EXPECT_TRUE(within(Op::Layers, freeze(encoder).forward(x, mask), expected));
}

TEST(FrozenRelativeBias, HeadsOfAllLayersOfADecoderAreThoseOfTheStack) {
  const auto layer = [] { return TransformerLayerOptions(8, 2).d_ff(12); };
  Transformer model(TransformerOptions(9, 9).num_heads(2).d_model(8).d_ff(12));
  model->decoder->layers->push_back(TransformerDecoderLayer(layer().head_dim(3)));
  EXPECT_ERROR(freeze(model), c10::ValueError, "self_attn: head_dim must be 4");
}

TEST(FrozenDocumentBias, OptionsAndTablesThatChangeAreNoticed) {
  const torch::NoGradGuard no_grad;
  auto options = small_options();
  options.document_bias(DocumentPositionBiasOptions(4, relative::Buckets{8, 20}));
  const auto ids = torch::randint(50, {2, 9});
  const auto refuse = [&](const char* why, const std::function<void(Encoder&)>& change) {
    auto encoder = small_encoder(options);
    const auto frozen = freeze(encoder);
    EXPECT_TRUE(within(Op::Layers, frozen.forward(ids).last_hidden_state,
                       encoder->forward(ids).last_hidden_state));
    change(encoder);
    EXPECT_ERROR(frozen.forward(ids), c10::Error, why);
  };
  refuse("other options of document_bias",
         [](Encoder& encoder) { encoder->document_bias->options.scale(0.5); });
  refuse("other values in document_bias.places.weight",
         [](Encoder& encoder) { encoder->document_bias->places->weight.add_(1.0); });
}

}  // namespace
}  // namespace posenc::testing
