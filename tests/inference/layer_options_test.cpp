// Frozen encoders with every option of their layers against the modules: heads, norms, gates,
// rotary embeddings, windows; with padding, and with any number of threads.

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "inference/models.h"
#include "posenc/inference/freeze.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "support/compare.h"
#include "support/threads.h"

namespace posenc::testing {
namespace {

using LayerOptions = TransformerLayerOptions;

// Pairs of halves and adjacent ones, parts of a head, values too, scales and positions in the
// factors.
RotaryEmbeddingOptions any_rotary(Dice& dice, int64_t head_dim) {
  static const char* const kNames[] = {"llama", "gptj", "modernbert", "gemma3", "glm", "xpos"};
  auto options = rotary_preset(kNames[dice(0, 5)], head_dim);
  if (dice.coin()) options.base(dice.coin() ? 1000.0 : 160000.0);
  if (dice(0, 3) == 0) options.rotary_value(true);
  return options;
}

std::optional<bool> any_bias(Dice& dice) {
  return dice.coin() ? std::nullopt : std::optional<bool>(dice.coin());
}

AdapterOptions any_adapter(Dice& dice) {
  static const AdapterNorm kNorms[] = {AdapterNorm::None, AdapterNorm::Own, AdapterNorm::Shared};
  return AdapterOptions(dice(1, 20)).norm(kNorms[dice(0, 2)]).norm_before_residual(dice.coin());
}

bool may_have_more(const LayerOptions& options) { return options.parallel() == Parallel::None; }

// The options that may differ from layer to layer.
void vary(Dice& dice, LayerOptions& options, int64_t length) {
  const int64_t head_dim = options.head_dim().value_or(options.d_model() / options.num_heads());
  if (dice.coin()) options.rotary(any_rotary(dice, head_dim));
  options.query_growth(std::nullopt);
  if (options.rotary() && dice(0, 2) == 0) options.query_growth(QueryGrowth{1.5, dice(1, 4)});
  options.window(dice.coin() ? std::nullopt : std::optional<int64_t>(dice(0, length + 2)));
  if (options.norm_first() && may_have_more(options))
    options.first_norm(dice.coin()).second_norm(dice.coin());
}

LayerOptions any_layer(Dice& dice) {
  static const NormKind kKinds[] = {NormKind::Layer, NormKind::RMS, NormKind::RMSPlusOne,
                                    NormKind::LayerPlusOne};
  static const Parallel kParallel[] = {Parallel::None, Parallel::None, Parallel::SharedNorm,
                                       Parallel::TwoNorms};
  static const Activation kActivations[] = {
      Activation::ReLU,      Activation::GELU, Activation::SiLU, Activation::GELUTanh,
      Activation::QuickGELU, Activation::Tanh, Activation::Mish, Activation::ReLUSquared};
  const int64_t kv_heads = dice(1, 3), heads = kv_heads * dice(1, 3), head_dim = 8 * dice(1, 5);
  const bool has_own_width = dice.coin();
  LayerOptions options(has_own_width ? dice(8, 90) : heads * head_dim, heads);
  if (has_own_width) options.head_dim(head_dim);
  if (kv_heads != heads) options.num_kv_heads(kv_heads);
  options.d_ff(dice(1, 90))
      .feed_forward(dice.coin() ? FeedForward::Gated : FeedForward::Plain)
      .activation(kActivations[dice(0, 7)])
      .norm_first(dice.coin())
      .norm_kind(kKinds[dice(0, 3)])
      .layer_norm_eps(dice.coin() ? 1e-5 : 1e-3)
      .bias(dice.coin())
      .qkv_bias(any_bias(dice))
      .out_bias(any_bias(dice))
      .linear1_bias(any_bias(dice))
      .linear2_bias(any_bias(dice))
      .norm_bias(any_bias(dice));
  options.norm_affine(dice(0, 3) != 0).qk_norm(dice.coin()).qk_norm_whole(dice(0, 3) == 0);
  if (options.qk_norm() && options.norm_kind() == NormKind::Layer) {
    options.qk_norm_bias(dice.coin());
    options.qk_norm_per_head(!options.qk_norm_whole() && dice.coin());
  }
  options.qk_norm_after_rotary(options.qk_norm() && dice(0, 2) == 0);
  if (dice(0, 2) == 0) options.qkv_clip(0.5);
  if (dice(0, 2) == 0) options.attention_softcap(0.4);
  options.parallel(options.norm_first() ? kParallel[dice(0, 3)] : Parallel::None);
  options.post_norms(options.norm_first() && may_have_more(options) && dice.coin());
  options.residual_of_norm(options.norm_first() && may_have_more(options) && dice(0, 2) == 0);
  if (dice(0, 2) == 0) options.residual_scale(0.6);
  options.value_norm(dice(0, 2) == 0);
  const bool has_more = may_have_more(options);
  if (options.norm_first() && has_more && dice(0, 2) == 0) options.output_factor(true);
  if (options.norm_first() && has_more && dice(0, 2) == 0) options.per_layer_input(dice(1, 20));
  if (options.feed_forward() == FeedForward::Plain && has_more && dice.coin())
    options.adapter(any_adapter(dice));
  if (dice(0, 2) == 0) options.attention_scale(0.3);
  if (dice(0, 2) == 0) options.layer_scale(0.5);
  return options;
}

// An encoder of layers that differ, all parameters of which are drawn.
TransformerEncoder any_encoder(Dice& dice, int64_t length) {
  auto layer = any_layer(dice);
  std::vector<LayerOptions> layers(static_cast<size_t>(dice(1, 4)), layer);
  for (auto& one : layers) vary(dice, one, length);
  TransformerEncoder encoder(TransformerEncoderOptions(layer, static_cast<int64_t>(layers.size()))
                                 .layers(layers)
                                 .norm(dice.coin()));
  const torch::NoGradGuard no_grad;
  for (auto& parameter : encoder->parameters()) {
    if (parameter.dim() == 1 || parameter.size(0) <= 9)
      parameter.add_(torch::randn_like(parameter), 0.2);
  }
  for (auto& item : encoder->named_buffers()) {
    if (item.key().ends_with("output_factor")) item.value().fill_(0.7);
  }
  encoder->eval();
  return encoder;
}

// Bool (batch, length), true for tokens, with padding on the right, on the left, or anywhere.
torch::Tensor any_tokens(Dice& dice, int64_t batch, int64_t length) {
  auto tokens = torch::ones({batch, length}, torch::kBool);
  const int64_t kind = dice(0, 3);
  if (kind == 0) return tokens;
  for (int64_t b = 1; b < batch; ++b) {
    const int64_t dropped = dice(0, length - 1);
    if (kind == 3) tokens[b] = torch::rand({length}) < 0.7;
    if (kind != 3) tokens[b].narrow(0, kind == 1 ? length - dropped : 0, dropped).fill_(false);
  }
  return tokens;
}

// Its angles are computed in float64.
TEST(LayerOptions, FrozenEncodersRotateAsRoFormer) {
  const torch::NoGradGuard no_grad;
  auto options = LayerOptions(16, 2).dropout(0.0).rotary(rotary_preset("roformer", 8));
  TransformerEncoder model(TransformerEncoderOptions(options, 2));
  model->eval();
  const auto x = torch::randn({2, 5, 16});
  EXPECT_TRUE(freeze(model).forward(x).allclose(model->forward(x), 1e-5, 1e-5));
}

TEST(LayerOptions, FrozenEncodersComputeWhatTheModulesCompute) {
  const torch::NoGradGuard no_grad;
  for (unsigned number = 0; number < 80; ++number) {
    Dice dice(100 + number);
    torch::manual_seed(seed(number));
    const int64_t batch = dice(1, 5), length = dice(1, number % 8 == 0 ? 150 : 40);
    auto encoder = any_encoder(dice, length);
    const auto frozen = freeze(encoder, FreezeOptions().gemm(kGemmBackends[number % 3]));
    std::ostringstream what;
    what << "model " << number << ", batch " << batch << ", length " << length << ", "
         << c10::str(*encoder);
    SCOPED_TRACE(what.str());
    const auto x = torch::randn({batch, length, encoder->options.layer().d_model()});
    const auto tokens = any_tokens(dice, batch, length);
    AttentionMask mask;
    if (!tokens.all().item<bool>()) mask = AttentionMask::key_padding(tokens);
    if (dice(0, 3) == 0) mask = mask & AttentionMask::causal();
    if (dice(0, 3) == 0)
      mask = mask & AttentionMask::additive(torch::randn({1, 1, length, length}));
    torch::Tensor ids;
    if (dice(0, 2) == 0) ids = torch::randint(0, 60, {length});
    if (dice(0, 2) == 0) ids = torch::randint(0, 60, {dice.coin() ? 1 : batch, length});
    TransformerEncoder exact(std::dynamic_pointer_cast<TransformerEncoderImpl>(encoder->clone()));
    exact->to(torch::kDouble);
    torch::Tensor first;
    for (const int threads : {1, 2, 3}) {
      const Threads set(threads);
      const auto got = frozen.forward(x, mask, ids);
      if (!first.defined()) first = got;
      const bool is_native = number % 3 == 0;
      EXPECT_TRUE(!is_native || bit_equal(got, first)) << threads;
    }
    EXPECT_TRUE(within(Op::Layers, first.index({tokens}),
                       encoder->forward(x, mask, ids).index({tokens}),
                       exact->forward(x.to(torch::kDouble), mask, ids).index({tokens})));
    EXPECT_FALSE(first.index({~tokens}).any().item<bool>());
  }
}

// Alone and beside layers with attention: all rows are computed, as padding is mixed in.
TEST(LayerOptions, FrozenEncodersMixByFourier) {
  const torch::NoGradGuard no_grad;
  for (unsigned number = 0; number < 12; ++number) {
    SCOPED_TRACE(number);
    Dice dice(300 + number);
    torch::manual_seed(seed(number));
    const int64_t width = 8 * dice(1, 5), batch = dice(1, 3), length = dice(1, 40);
    const auto options = [&](int64_t heads) {
      return LayerOptions(width, heads).d_ff(30).norm_first(number % 2 == 0);
    };
    const auto fourier = options(1).mixing(Mixing::Fourier);
    const bool is_mixed = number % 3 != 0;
    const auto other = is_mixed ? options(2) : fourier;
    TransformerEncoder encoder(
        TransformerEncoderOptions(other, 3).layers({fourier, other, fourier}).norm(dice.coin()));
    encoder->eval();
    const auto frozen = freeze(encoder);
    const auto x = torch::randn({batch, length, width});
    const auto mask = AttentionMask::key_padding(any_tokens(dice, batch, length));
    torch::Tensor first;
    for (const int threads : {1, 3}) {
      const Threads set(threads);
      const auto got = frozen.forward(x, mask);
      if (!first.defined()) first = got;
      EXPECT_TRUE(bit_equal(got, first)) << threads;
    }
    EXPECT_TRUE(first.allclose(encoder->forward(x, mask), 1e-4, 1e-5));
    EXPECT_ERROR(
        frozen.forward(x, AttentionMask::causal()), c10::ValueError,
        "mask must be of keys only with Mixing::Fourier, which mixes all tokens. Got one of "
        "causal()");
  }
}

// A sequence has the same bits alone and in a batch, also where a window ends between its tokens.
TEST(LayerOptions, PaddingChangesNoBitOfAWindow) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(seed(1));
  for (const int64_t window : {0, 1, 5, 23, 24, 100}) {
    const auto layer = LayerOptions(48, 3).d_ff(70).window(window).rotary(
        RotaryEmbeddingOptions(rotary_preset("modernbert", 16)));
    const auto frozen = freeze(TransformerEncoder(TransformerEncoderOptions(layer, 2)));
    const auto x = torch::randn({3, 60, 48});
    auto tokens = torch::ones({3, 60}, torch::kBool);
    tokens[1].narrow(0, 24, 36).fill_(false);
    tokens[2].narrow(0, 0, 7).fill_(false);
    const auto all = frozen.forward(x, AttentionMask::key_padding(tokens));
    const auto alone = frozen.forward(x.narrow(0, 1, 1).narrow(1, 0, 24));
    EXPECT_TRUE(bit_equal(all.narrow(0, 1, 1).narrow(1, 0, 24).contiguous(), alone)) << window;
  }
}

TEST(LayerOptions, LayersWithOneRotaryEmbeddingKeepOneCopyOfTheMemory) {
  const auto layer =
      LayerOptions(32, 2).d_ff(8).rotary(RotaryEmbeddingOptions(rotary_preset("llama", 16)));
  TransformerEncoder encoder(TransformerEncoderOptions(layer, 3));
  const auto frozen = freeze(encoder);
  EXPECT_EQ(frozen.bytes().own, 0);
  const auto before = frozen.forward(torch::ones({1, 4, 32}));
  const torch::NoGradGuard no_grad;
  auto& attention = *encoder->layers[2]->as<TransformerEncoderLayer>()->self_attn;
  attention.rotary->inv_freq.mul_(2.0);
  EXPECT_ERROR(frozen.forward(torch::ones({1, 4, 32})), c10::Error,
               "other values in layers.2.self_attn.rotary.inv_freq");
  // Frozen anew, the last layer has frequencies of its own.
  const auto anew = freeze(encoder).forward(torch::ones({1, 4, 32}));
  EXPECT_FALSE(torch::equal(anew, before));
  encoder->eval();
  EXPECT_TRUE(within(Op::Layers, anew, encoder->forward(torch::ones({1, 4, 32}))));
}

TEST(LayerOptions, AFrozenModelNoticesOtherOptions) {
  using Layer = TransformerEncoderLayerImpl;
  const std::pair<std::function<void(Layer&)>, const char*> cases[] = {
      {[](Layer& layer) { layer.options.window(3); }, "layers.0"},
      {[](Layer& layer) { layer.options.feed_forward(FeedForward::Plain); }, "layers.0"},
      {[](Layer& layer) { layer.norm2->options.kind(NormKind::RMSPlusOne); }, "layers.0.norm2"},
      {[](Layer& layer) { layer.self_attn->options.scale(2.0); }, "layers.0.self_attn"},
      {[](Layer& layer) { layer.self_attn->rotary->options.length(9); },
       "layers.0.self_attn.rotary"},
  };
  for (const auto& [change, part] : cases) {
    const auto layer = LayerOptions(32, 2)
                           .d_ff(8)
                           .norm_kind(NormKind::RMS)
                           .window(2)
                           .feed_forward(FeedForward::Gated)
                           .rotary(RotaryEmbeddingOptions(rotary_preset("llama", 16)));
    TransformerEncoder encoder(TransformerEncoderOptions(layer, 1));
    const auto frozen = freeze(encoder);
    const auto x = torch::zeros({1, 2, 32});
    EXPECT_NO_THROW(frozen.forward(x));
    change(*encoder->layers[0]->as<TransformerEncoderLayer>());
    EXPECT_ERROR(frozen.forward(x), c10::Error, std::string("other options of ") + part);
  }
}

// The layers of a bottleneck may differ in their heads.
TEST(LayerOptions, HeadsOfEachBottleneck) {
  const auto layer = LayerOptions(16, 4).d_ff(8).bottleneck(BottleneckOptions(8));
  TransformerEncoder encoder(
      TransformerEncoderOptions(layer, 2).layers({layer, LayerOptions(layer).num_heads(2)}));
  encoder->eval();
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 5, 16});
  EXPECT_TRUE(within(Op::Layers, freeze(encoder).forward(x), encoder->forward(x)));
}

TEST(LayerOptionsErrors, NameThePart) {
  const auto layer = LayerOptions(16, 4)
                         .d_ff(8)
                         .norm_kind(NormKind::RMS)
                         .qk_norm(true)
                         .post_norms(true)
                         .norm_first(true);
  using Layer = TransformerEncoderLayerImpl;
  const std::pair<std::function<void(Layer&)>, const char*> cases[] = {
      {[](Layer& one) { one.self_attn->options.num_kv_heads(3); },
       "[freeze] layers.0.self_attn: num_kv_heads must divide num_heads 4. Got 3"},
      {[](Layer& one) { one.self_attn->options.head_dim(8); },
       "layers.0.self_attn.in_proj_weight must be [96, 16]. Got [48, 16]"},
      {[](Layer& one) { one.self_attn->q_norm->weight = torch::ones({3}); },
       "layers.0.self_attn.q_norm.weight must be [4]. Got [3]"},
      {[](Layer& one) { one.self_attn->k_norm = nullptr; },
       "layers.0.self_attn.k_norm must be a module. Got an empty holder"},
      {[](Layer& one) { one.post_norm2->weight = torch::ones({3}); },
       "layers.0.post_norm2.weight must be [16]. Got [3]"},
      {[](Layer& one) { one.options.feed_forward(FeedForward::Gated); },
       "layers.0.linear1.weight must be [16, 16]. Got [8, 16]"},
      {[](Layer& one) {
         one.self_attn = one.replace_module(
             "self_attn", MultiheadAttention(MultiheadAttentionOptions(16, 4).kdim(3)));
       },
       "layers.0.self_attn must have keys and values of the width of queries"},
  };
  for (const auto& [change, text] : cases) {
    TransformerEncoder encoder(TransformerEncoderOptions(layer, 1));
    change(*encoder->layers[0]->as<TransformerEncoderLayer>());
    EXPECT_ERROR(freeze(encoder), c10::ValueError, text);
  }
  TransformerEncoder encoder(TransformerEncoderOptions(layer, 1));
  EXPECT_ERROR(freeze(encoder).forward(torch::zeros({2, 3, 16}), {}, torch::arange(4)),
               c10::ValueError, "position_ids must be (L) or (B, L) = [2, 3] on the CPU. Got [4]");
}

// The positions of patches: those of all images, or of each.
TEST(LayerOptions, RotateByTheAxesOfImages) {
  torch::manual_seed(testing::seed(8));
  const auto rotary = RotaryEmbeddingOptions(rotary_preset("dinov3", 8));
  TransformerEncoder encoder(
      TransformerEncoderOptions(LayerOptions(16, 2).d_ff(8).rotary(rotary), 2));
  encoder->eval();
  const auto frozen = freeze(encoder);
  const auto x = torch::randn({3, 6, 16});
  const auto keep = torch::tensor({{1, 1, 1, 1, 1, 1}, {0, 0, 1, 1, 1, 1}, {1, 0, 0, 1, 1, 0}});
  const auto mask = AttentionMask::key_padding(keep);
  for (const auto& positions :
       {torch::rand({6, 2}), torch::rand({1, 6, 2}), torch::rand({3, 6, 2})}) {
    const auto rows = keep.ne(0).unsqueeze(-1);
    EXPECT_TRUE(within(Op::Layers, frozen.forward(x, mask, positions).masked_select(rows),
                       encoder->forward(x, mask, positions).masked_select(rows)));
    EXPECT_TRUE(
        within(Op::Layers, frozen.forward(x, {}, positions), encoder->forward(x, {}, positions)));
  }
  EXPECT_ERROR(frozen.forward(x), c10::ValueError, "an axial rotary embedding needs position_ids");
  EXPECT_ERROR(frozen.forward(x, {}, torch::arange(6)), c10::ValueError,
               "position_ids must be (L, axes) or (B, L, axes) = [3, 6, axes] on the CPU. Got [6]");
  auto mixed = TransformerEncoderOptions(LayerOptions(16, 2).d_ff(8).rotary(rotary), 2);
  mixed.layers({mixed.layer(), LayerOptions(16, 2).d_ff(8).rotary(
                                   RotaryEmbeddingOptions(rotary_preset("llama", 8)))});
  EXPECT_ERROR(freeze(TransformerEncoder(mixed)), c10::ValueError,
               "the rotary embeddings of all layers must rotate by one position of a token");
}

// DINOv3's keys have no bias.
TEST(LayerOptions, BiasesThatAreNoneGetNoGradient) {
  const auto options = LayerOptions(16, 2).d_ff(8).key_bias(false);
  const TransformerEncoder source(TransformerEncoderOptions(options, 1));
  const auto copy = std::dynamic_pointer_cast<TransformerEncoderImpl>(source->clone());
  copy->forward(torch::randn({2, 3, 16})).square().sum().backward();
  const auto layer = copy->layers->ptr<TransformerEncoderLayerImpl>(0);
  const auto grad = layer->self_attn->in_proj_bias.grad();
  EXPECT_TRUE(bit_equal(grad.slice(0, 16, 32), torch::zeros({16})));
  EXPECT_GT(grad.slice(0, 0, 16).abs().min().item<float>(), 0.0F);
  EXPECT_GT(grad.slice(0, 32).abs().min().item<float>(), 0.0F);
}

}  // namespace
}  // namespace posenc::testing
