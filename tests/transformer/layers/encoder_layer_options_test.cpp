// posenc-budget: one test of each option
// The options that encoder layers alone have: gates, windows, rotary positions, kinds of norms.

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "posenc/inference/freeze.h"
#include "posenc/positions/nn/rms_norm.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "posenc/transformer/layers/transformer_decoder.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "support/compare.h"

namespace posenc {
namespace {

using testing::bit_equal;

TransformerLayerOptions gemma_like() {
  return TransformerLayerOptions(8, 2)
      .d_ff(5)
      .dropout(0.0)
      .activation(Activation::GELUTanh)
      .norm_first(true)
      .bias(false)
      .norm_kind(NormKind::RMSPlusOne)
      .feed_forward(FeedForward::Gated)
      .post_norms(true)
      .qk_norm(true)
      .head_dim(6)
      .num_kv_heads(1)
      .attention_scale(0.3)
      .rotary(RotaryEmbeddingOptions(rotary_preset("llama", 6)));
}

template <typename Module>
Module with_drawn_weights(Module module) {
  torch::manual_seed(8);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module->parameters()) parameter.copy_(torch::randn_like(parameter) * 0.4);
  return module;
}

bool near(const torch::Tensor& a, const torch::Tensor& b, double atol) {
  return torch::allclose(a, b, /*rtol=*/0.0, atol);
}

torch::Tensor band(int64_t length, int64_t width) {
  const auto i = torch::arange(length);
  return (i.unsqueeze(0) - i.unsqueeze(1)).abs() <= width;
}

TEST(EncoderLayerOptions, TheirNormsAreThoseOfTheirKind) {
  const auto x = torch::randn({3, 8}), weight = torch::randn({8}), bias = torch::randn({8});
  const auto options = [] { return TransformerNormOptions(8).eps(0.01); };
  const torch::NoGradGuard no_grad;
  TransformerNorm layer(options()), rms(options().kind(NormKind::RMS)),
      plus_one(options().kind(NormKind::RMSPlusOne));
  for (auto* norm : {&layer, &rms, &plus_one}) (*norm)->weight.copy_(weight);
  layer->bias.copy_(bias);
  EXPECT_TRUE(bit_equal(layer->forward(x), torch::layer_norm(x, {8}, weight, bias, 0.01)));
  const auto with_weight = [&](RMSNorm norm) {
    norm->weight.copy_(weight);
    return norm->forward(x);
  };
  EXPECT_TRUE(bit_equal(rms->forward(x), with_weight(RMSNorm(RMSNormOptions(8).eps(0.01)))));
  EXPECT_TRUE(
      bit_equal(plus_one->forward(x), with_weight(RMSNorm(RMSNormOptions::gemma(8).eps(0.01)))));
  TransformerNorm affine(options().kind(NormKind::Affine));
  EXPECT_TRUE(bit_equal(affine->forward(x), x)) << "initial weights change nothing";
  affine->weight.copy_(weight);
  affine->bias.copy_(bias);
  EXPECT_TRUE(bit_equal(affine->forward(x), x * weight + bias));
  EXPECT_TRUE(bit_equal(TransformerNorm(options().kind(NormKind::RMSPlusOne))->forward(x),
                        TransformerNorm(options().kind(NormKind::RMS))->forward(x)))
      << "initial weights multiply by one";
  TransformerNorm layer_plus_one(options().kind(NormKind::LayerPlusOne));
  EXPECT_TRUE(bit_equal(layer_plus_one->forward(x), torch::layer_norm(x, {8}, {}, {}, 0.01)));
  layer_plus_one->weight.copy_(weight - 1);
  layer_plus_one->bias.copy_(bias);
  EXPECT_TRUE(near(layer_plus_one->forward(x), layer->forward(x), 1e-5));
  for (const auto kind : {NormKind::Layer, NormKind::RMS, NormKind::LayerPlusOne}) {
    TransformerNorm plain(options().kind(kind).elementwise_affine(false));
    EXPECT_TRUE(plain->parameters().empty());
    EXPECT_TRUE(bit_equal(plain->forward(x), TransformerNorm(options().kind(kind))->forward(x)));
  }
}

TEST(EncoderLayerOptions, NormsOfHeadsHaveAWeightForEach) {
  const torch::NoGradGuard no_grad;
  auto of_heads = with_drawn_weights(TransformerNorm(TransformerNormOptions(8).num_heads(3)));
  const auto x = torch::randn({2, 3, 8});
  for (int64_t head = 0; head < 3; ++head) {
    TransformerNorm one(8);
    one->weight.copy_(of_heads->weight[head]);
    one->bias.copy_(of_heads->bias[head]);
    EXPECT_TRUE(near(of_heads->forward(x).select(1, head), one->forward(x.select(1, head)), 1e-6));
  }
  EXPECT_ERROR(TransformerNorm(TransformerNormOptions(8).num_heads(3).kind(NormKind::RMS)),
               c10::ValueError, "num_heads must be with NormKind::Layer. Got rms");
}

TEST(EncoderLayerOptions, ParallelBlocksReadTheInputOfTheLayer) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 5, 8});
  for (const auto parallel : {Parallel::None, Parallel::SharedNorm, Parallel::TwoNorms}) {
    auto layer = with_drawn_weights(TransformerEncoderLayer(
        TransformerLayerOptions(8, 2).d_ff(5).dropout(0.0).norm_first(true).parallel(parallel)));
    EXPECT_EQ(layer->norm2.is_empty(), parallel == Parallel::SharedNorm);
    const auto input = layer->norm1->forward(x);
    const auto attended = layer->self_attn->forward(input, input, input);
    const auto read = parallel == Parallel::None ? x + attended : x;
    const auto normal = (layer->norm2 ? layer->norm2 : layer->norm1)->forward(read);
    const auto network = layer->linear2->forward(torch::relu(layer->linear1->forward(normal)));
    EXPECT_TRUE(near(layer->forward(x), x + attended + network, 1e-5));
  }
}

TEST(EncoderLayerOptions, AResidualMayBeTheNormalisedInput) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 5, 8});
  auto layer = with_drawn_weights(TransformerEncoderLayer(
      TransformerLayerOptions(8, 2).d_ff(5).dropout(0.0).norm_first(true).residual_of_norm(true)));
  const auto input = layer->norm1->forward(x);
  const auto middle = layer->norm2->forward(input + layer->self_attn->forward(input, input, input));
  const auto network = layer->linear2->forward(torch::relu(layer->linear1->forward(middle)));
  EXPECT_TRUE(near(layer->forward(x), middle + network, 1e-5));
}

TEST(EncoderLayerOptions, ProjectionsMayBeClipped) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 5, 8});
  auto attention = with_drawn_weights(MultiheadAttention(MultiheadAttentionOptions(8, 2)));
  auto clipped =
      with_drawn_weights(MultiheadAttention(MultiheadAttentionOptions(8, 2).qkv_clip(0.4)));
  const auto rows = torch::linear(x, attention->in_proj_weight, attention->in_proj_bias);
  const auto heads = [](const torch::Tensor& part) {
    return part.unflatten(-1, {2, 4}).transpose(1, 2);
  };
  const auto parts = rows.clamp(-0.4, 0.4).chunk(3, -1);
  const auto shares = (heads(parts[0]).matmul(heads(parts[1]).transpose(-1, -2)) / 2.0).softmax(-1);
  const auto context = shares.matmul(heads(parts[2])).transpose(1, 2).flatten(2);
  EXPECT_TRUE(near(clipped->forward(x, x, x), attention->out_proj->forward(context), 1e-5));
  EXPECT_FALSE(near(clipped->forward(x, x, x), attention->forward(x, x, x), 1e-2));
}

TEST(EncoderLayerOptions, ScoresMayBeCapped) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 5, 8});
  auto capped = with_drawn_weights(
      MultiheadAttention(MultiheadAttentionOptions(8, 2).softcap(0.3).scale(2.0)));
  const auto heads = [](const torch::Tensor& part) {
    return part.unflatten(-1, {2, 4}).transpose(1, 2);
  };
  const auto parts = torch::linear(x, capped->in_proj_weight, capped->in_proj_bias).chunk(3, -1);
  const auto products = heads(parts[0]).matmul(heads(parts[1]).transpose(-1, -2));
  const auto hidden = torch::ones({5, 5}, torch::kBool).triu(1);
  const auto scores = (0.3 * torch::tanh(2.0 * products / 0.3)).masked_fill(hidden, -INFINITY);
  const auto context = scores.softmax(-1).matmul(heads(parts[2])).transpose(1, 2).flatten(2);
  const auto expected = capped->out_proj->forward(context);
  EXPECT_TRUE(near(capped->forward(x, x, x, AttentionMask::causal()), expected, 1e-5));
  const auto [out, shares] = capped->forward_with_weights(x, x, x, AttentionMask::causal(), false);
  EXPECT_TRUE(near(out, expected, 1e-5));
  EXPECT_TRUE(near(shares, scores.softmax(-1), 1e-5));
}

// A step takes positions from its cache.
TEST(EncoderLayerOptions, QueriesMayGrowAndNormsFollowTheRotation) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 7, 8});
  const auto options =
      MultiheadAttentionOptions(8, 2).rotary(RotaryEmbeddingOptions(rotary_preset("llama", 4)));
  const auto heads = [](const torch::Tensor& part) {
    return part.unflatten(-1, {2, 4}).transpose(1, 2);
  };
  for (const bool grows : {false, true}) {
    auto own = MultiheadAttentionOptions(options);
    if (grows) own.query_growth(QueryGrowth{1.5, 3});
    if (!grows) own.qk_norm(NormKind::RMS).qk_norm_after_rotary(true);
    auto attention = with_drawn_weights(MultiheadAttention(own));
    const auto parts =
        torch::linear(x, attention->in_proj_weight, attention->in_proj_bias).chunk(3, -1);
    auto [query, key] = attention->rotary->forward(heads(parts[0]), heads(parts[1]));
    if (grows) {
      const auto growth =
          1.0 + 1.5 * torch::log(torch::tensor({1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0}));
      query = query * growth.unsqueeze(1);
    } else {
      query = attention->q_norm->forward(query);
      key = attention->k_norm->forward(key);
    }
    const auto shares = (query.matmul(key.transpose(-1, -2)) / 2.0)
                            .masked_fill(torch::ones({7, 7}, torch::kBool).triu(1), -INFINITY)
                            .softmax(-1);
    const auto context = shares.matmul(heads(parts[2])).transpose(1, 2).flatten(2);
    const auto expected = attention->out_proj->forward(context);
    EXPECT_TRUE(near(attention->forward(x, x, x, AttentionMask::causal()), expected, 1e-5));
    auto cache = attention->make_cache(2, 7);
    const auto first = attention->step(x.narrow(1, 0, 4), cache);
    const auto second = attention->step(x.narrow(1, 4, 3), cache);
    EXPECT_TRUE(near(torch::cat({first, second}, 1), expected, 1e-5));
    EXPECT_FALSE(near(attention->forward(x, x, x, {}, torch::arange(7) + 2),
                      attention->forward(x, x, x), 1e-3))
        << "neither is relative";
  }
}

TEST(EncoderLayerOptions, AWindowMasksWhatIsFurtherAway) {
  const auto x = torch::randn({2, 7, 8});
  const auto padding = AttentionMask::key_padding(torch::tensor(
      {{true, true, true, true, true, true, true}, {true, true, true, true, true, false, false}}));
  auto plain = with_drawn_weights(TransformerEncoderLayer(gemma_like()));
  for (const int64_t width : {0, 1, 3, 6, 100}) {
    SCOPED_TRACE(width);
    auto layer = with_drawn_weights(TransformerEncoderLayer(gemma_like().window(width)));
    for (const AttentionMask& mask : {AttentionMask(), padding, AttentionMask::causal()}) {
      const auto expected = plain->forward(x, mask & AttentionMask::allowed_pairs(band(7, width)));
      EXPECT_TRUE(near(layer->forward(x, mask), expected, 1e-6));
    }
  }
}

// A stack resolves the mask once for each window.
TEST(EncoderLayerOptions, EachLayerOfAStackMayHaveItsOwn) {
  const auto wide = gemma_like(), narrow = gemma_like().window(1),
             other = gemma_like().window(2).num_kv_heads(2).attention_scale(std::nullopt);
  auto stack = with_drawn_weights(TransformerEncoder(
      TransformerEncoderOptions(wide, 4).norm(true).layers({narrow, wide, other, narrow})));
  const auto x = torch::randn({2, 7, 8}), positions = torch::randint(50, {2, 7});
  const auto mask = AttentionMask::key_padding(torch::ones({2, 7}, torch::kLong).tril(4));
  torch::Tensor expected = x;
  for (size_t i = 0; i < 4; ++i) {
    expected =
        stack->layers->ptr<TransformerEncoderLayerImpl>(i)->forward(expected, mask, positions);
  }
  EXPECT_TRUE(near(stack->forward(x, mask, positions), stack->norm->forward(expected), 1e-6));
}

TEST(EncoderLayerOptions, GatesAreTheSecondHalfOfTheRows) {
  auto layer = with_drawn_weights(TransformerEncoderLayer(
      TransformerLayerOptions(8, 2).d_ff(5).dropout(0.0).feed_forward(FeedForward::Gated)));
  EXPECT_EQ(layer->linear1->weight.size(0), 10);
  const auto x = torch::randn({1, 3, 8});
  const auto attended = layer->norm1->forward(x + layer->self_attn->forward(x, x, x));
  const auto wide = layer->linear1->forward(attended);
  const auto network =
      layer->linear2->forward(torch::relu(wide.narrow(-1, 0, 5)) * wide.narrow(-1, 5, 5));
  EXPECT_TRUE(near(layer->forward(x), layer->norm2->forward(attended + network), 1e-6));
}

TEST(EncoderLayerOptions, PositionsMatterByTheirDistances) {
  auto layer = with_drawn_weights(TransformerEncoderLayer(gemma_like()));
  const auto x = torch::randn({2, 5, 8}), ids = torch::arange(5);
  EXPECT_TRUE(bit_equal(layer->forward(x, {}, ids), layer->forward(x)));
  EXPECT_TRUE(near(layer->forward(x, {}, ids + 11), layer->forward(x), 1e-5));
  EXPECT_FALSE(near(layer->forward(x, {}, ids * 2), layer->forward(x), 1e-4));
}

// The definition of the transform, sums over all tokens and channels.
torch::Tensor transformed(const torch::Tensor& x) {
  const auto matrix = [](int64_t size) {
    const auto i = torch::arange(size, torch::kDouble);
    return torch::polar(torch::ones({size, size}, torch::kDouble),
                        -2 * M_PI / static_cast<double>(size) * torch::outer(i, i));
  };
  const auto channels = torch::matmul(x.to(torch::kComplexDouble), matrix(x.size(2)));
  return torch::real(torch::matmul(matrix(x.size(1)), channels)).to(torch::kFloat);
}

TEST(EncoderLayerOptions, FourierMixesTokensAndChannels) {
  const auto options = [] {
    return TransformerLayerOptions(6, 1).d_ff(5).dropout(0.0).mixing(Mixing::Fourier);
  };
  const auto padding = AttentionMask::key_padding(torch::ones({2, 7}, torch::kLong).tril(4));
  for (const int64_t length : {1, 2, 7, 8}) {
    SCOPED_TRACE(length);
    const auto x = torch::randn({2, length, 6});
    auto layer = with_drawn_weights(TransformerEncoderLayer(options()));
    EXPECT_FALSE(layer->self_attn);
    const auto mixed = layer->norm1->forward(x + transformed(x));
    const auto wide = torch::relu(layer->linear1->forward(mixed));
    const auto expected = layer->norm2->forward(mixed + layer->linear2->forward(wide));
    EXPECT_TRUE(near(layer->forward(x), expected, 1e-5));
    if (length == 7) {
      EXPECT_TRUE(bit_equal(layer->forward(x, padding), layer->forward(x)));
    }
    auto other = with_drawn_weights(TransformerEncoderLayer(options().batch_first(false)));
    EXPECT_TRUE(near(other->forward(x.transpose(0, 1)), expected.transpose(0, 1), 1e-5));
  }
  auto layer = TransformerEncoderLayer(options());
  const auto x = torch::randn({2, 7, 6});
  EXPECT_ERROR(layer->forward(x, AttentionMask::causal() & AttentionMask::window(2)),
               c10::ValueError,
               "mask must be of keys only with Mixing::Fourier, which mixes all tokens. Got one of "
               "causal() & window()");
  EXPECT_ERROR(layer->forward_with_weights(x), c10::ValueError,
               "mixing must be Mixing::Attention for attention weights. Got Mixing::Fourier");
}

TEST(EncoderLayerOptions, BiasesAreApart) {
  const auto options = TransformerLayerOptions(8, 2).bias(false);
  const std::pair<std::function<TransformerLayerOptions()>, std::string> cases[] = {
      {[&] { return TransformerLayerOptions(options).qkv_bias(true); }, "self_attn.in_proj_bias "},
      {[&] { return TransformerLayerOptions(options).out_bias(true); }, "self_attn.out_proj.bias "},
      {[&] { return TransformerLayerOptions(options).linear1_bias(true); }, "linear1.bias "},
      {[&] { return TransformerLayerOptions(options).linear2_bias(true); }, "linear2.bias "},
      {[&] { return TransformerLayerOptions(options).norm_bias(true); }, "norm1.bias norm2.bias "}};
  for (const auto& [make, expected] : cases) {
    std::string biases;
    for (const auto& item : TransformerEncoderLayer(make())->named_parameters()) {
      if (item.key().find("bias") != std::string::npos) biases += item.key() + " ";
    }
    EXPECT_EQ(biases, expected);
  }
}

TEST(EncoderLayerOptions, ThoseThatExcludeEachOtherAreRefused) {
  const auto plain = [] { return TransformerLayerOptions(8, 2); };
  const std::pair<TransformerLayerOptions, const char*> cases[] = {
      {plain().first_norm(false), "first_norm(false) must be with norm_first(true)"},
      {plain().post_norms(true), "post_norms(true) must be with norm_first(true)"},
      {plain().qk_norm(true).norm_kind(NormKind::Affine),
       "qk_norm(true) must be with a norm_kind that normalises. Got NormKind::Affine"},
      {plain().qk_norm_per_head(true),
       "qk_norm_bias, qk_norm_per_head and qk_norm_after_rotary must be with qk_norm(true)"},
      {plain().qk_norm(true).qk_norm_bias(true).norm_kind(NormKind::RMS),
       "qk_norm_bias(true) must be with NormKind::Layer. Got rms"},
      {plain().qk_norm(true).qk_norm_per_head(true).qk_norm_whole(true),
       "qk_norm_per_head(true) must be without qk_norm_whole. Got both"},
      {plain().qkv_clip(-1.0), "qkv_clip must not be negative. Got -1"},
      {plain().attention_softcap(0.0), "softcap must be positive and finite. Got 0"},
      {plain().query_growth(QueryGrowth{1.0, 3}),
       "query_growth needs a rotary embedding that rotates by one position of a token, by which "
       "queries grow. Got no rotary"},
      {plain()
           .rotary(RotaryEmbeddingOptions(rotary_preset("llama", 4)))
           .query_growth(QueryGrowth{1.0, 0}),
       "query_growth must have a finite beta and a length of at least 1. Got 1 and 0"},
      {plain().second_norm(false), "second_norm(false) must be with norm_first(true)"},
      {plain().residual_of_norm(true), "residual_of_norm(true) must be with norm_first(true)"},
      {plain().parallel(Parallel::TwoNorms), "parallel must be with norm_first(true)"},
      {plain().norm_first(true).parallel(Parallel::SharedNorm).post_norms(true),
       "parallel must be without post_norms(true). Got both"},
      {plain().norm_first(true).parallel(Parallel::SharedNorm).adapter(AdapterOptions(3)),
       "parallel must be without adapter. Got both"},
      {plain().window(-1), "window must not be negative. Got -1"},
      {plain().residual_scale(NAN), "residual_scale must be finite. Got nan"},
      {plain().output_factor(true), "output_factor(true) must be with norm_first(true)"},
      {plain().per_layer_input(3), "per_layer_input must be with norm_first(true)"},
      {plain().norm_first(true).per_layer_input(0), "per_layer_input must be positive. Got 0"},
      {plain().adapter(AdapterOptions(0)), "adapter.width must be positive. Got 0"},
      {plain().adapter(AdapterOptions(3)).feed_forward(FeedForward::Gated),
       "adapter must be with FeedForward::Plain. Got FeedForward::Gated"},
      {TransformerLayerOptions(8, 1).mixing(Mixing::Fourier).adapter(AdapterOptions(3)),
       "adapter must be its default"},
      {plain().head_dim(0), "head_dim must be positive. Got 0"},
      {plain().num_kv_heads(3), "num_kv_heads must divide num_heads 2. Got 3"},
      {plain().attention_scale(NAN), "scale must be finite. Got nan"},
      {plain().mixing(Mixing::Fourier), "num_heads must be its default with Mixing::Fourier"},
      {TransformerLayerOptions(8, 1).mixing(Mixing::Fourier).window(1),
       "window must be its default"},
      {TransformerLayerOptions(8, 1).mixing(Mixing::Fourier).key_bias(false),
       "key_bias must be its default"},
      {plain().rotary(RotaryEmbeddingOptions(rotary_preset("llama", 6))),
       "rotary must rotate the 4 channels of a head. Got 6"}};
  for (const auto& [options, message] : cases) {
    EXPECT_ERROR(TransformerEncoderLayer{options}, c10::ValueError, message);
  }
  const TransformerEncoderOptions stack(plain(), 2);
  EXPECT_ERROR(TransformerEncoder(TransformerEncoderOptions(stack).layers({plain()})),
               c10::ValueError, "options of each of num_layers 2 layers, or none. Got 1");
  EXPECT_ERROR(TransformerEncoder(TransformerEncoderOptions(stack).layers(
                   {plain(), TransformerLayerOptions(6, 2)})),
               c10::ValueError, "d_model of each of layers must be that of layer, 8. Got 6");
  EXPECT_ERROR(TransformerEncoder(
                   TransformerEncoderOptions(stack).layers({plain(), plain().batch_first(false)})),
               c10::ValueError, "batch_first of each of layers must be that of layer");
}

TEST(EncoderLayerOptions, AnInputOfTheirOwnIsThatOfTheStack) {
  const auto options = TransformerLayerOptions(8, 2).norm_first(true).per_layer_input(3);
  const auto x = torch::randn({2, 4, 8});
  EXPECT_ERROR(TransformerEncoderLayer(options)->forward(x), c10::ValueError,
               "a layer with per_layer_input must be in a stack");
  EXPECT_ERROR(TransformerEncoder(
                   TransformerEncoderOptions(options, 2)
                       .layers({options, TransformerLayerOptions(options).per_layer_input(4)})),
               c10::ValueError, "per_layer_input of each of layers must be that of layer");
}

TEST(EncoderLayerOptions, DecodersHaveNone) {
  const auto plain = [] { return TransformerLayerOptions(8, 2).norm_first(true); };
  const std::pair<TransformerLayerOptions, const char*> cases[] = {
      {plain().mixing(Mixing::Fourier), "mixing"},
      {plain().bottleneck(BottleneckOptions(4)), "bottleneck"},
      {plain().disentangled(DisentangledOptions(4)), "disentangled"},
      {plain().transformer_xl(TransformerXLOptions(SinusoidOptions(8))), "transformer_xl"},
      {plain().conformer(ConformerOptions(3)), "conformer"},
      {plain().first_norm(false), "first_norm"},
      {plain().second_norm(false), "second_norm"},
      {plain().residual_of_norm(true), "residual_of_norm"},
      {plain().parallel(Parallel::SharedNorm), "parallel"},
      {plain().norm_affine(false), "norm_affine"},
      {plain().qkv_clip(1.0), "qkv_clip"},
      {plain().attention_softcap(1.0), "attention_softcap"},
      {plain().query_growth(QueryGrowth()), "query_growth"},
      {plain().post_norms(true), "post_norms"},
      {plain().residual_scale(0.5), "residual_scale"},
      {plain().per_layer_input(3), "per_layer_input"},
      {plain().output_factor(true), "output_factor"},
      {plain().value_norm(true), "value_norm"},
      {plain().adapter(AdapterOptions(3)), "adapter"},
      {plain().rotary(RotaryEmbeddingOptions(rotary_preset("llama", 4))), "rotary"},
      {plain().window(3), "window"}};
  for (const auto& [options, name] : cases) {
    EXPECT_ERROR(TransformerDecoderLayer{options}, c10::ValueError,
                 std::string("Got ") + name + ", which only encoder layers have");
  }
}

TEST(FinalNorm, MayHaveAnEpsilonOfItsOwn) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 5, 8}) * 1e-3;
  for (const std::optional<double> eps : {std::optional<double>(), std::optional<double>(1e-2)}) {
    const auto layer = TransformerLayerOptions(8, 2).norm_first(true).layer_norm_eps(1e-6);
    auto encoder =
        TransformerEncoder(TransformerEncoderOptions(layer, 1).norm(true).final_norm_eps(eps));
    auto decoder =
        TransformerDecoder(TransformerDecoderOptions(layer, 1).norm(true).final_norm_eps(eps));
    encoder->eval();
    EXPECT_EQ(encoder->norm->options.eps(), eps.value_or(1e-6));
    EXPECT_EQ(decoder->norm->options.eps(), eps.value_or(1e-6));
    TransformerEncoderRecord record;
    record.output_hidden_states = true;
    const auto out = encoder->forward_with(x, {}, record);
    const auto expected = torch::layer_norm(record.hidden_states[1], {8}, encoder->norm->weight,
                                            encoder->norm->bias, eps.value_or(1e-6));
    EXPECT_TRUE(torch::allclose(out, expected, 1e-5, 1e-6));
    EXPECT_TRUE(torch::allclose(freeze(encoder).forward(x), out, 1e-5, 1e-5));
  }
}

}  // namespace
}  // namespace posenc
