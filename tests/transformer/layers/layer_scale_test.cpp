// LayerScale, and the layers that have one after each block.

#include "posenc/transformer/layers/layer_scale.h"

#include <gtest/gtest.h>

#include <sstream>

#include "posenc/inference/freeze.h"
#include "posenc/transformer/transformer.h"
#include "support/compare.h"
#include "support/seed.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::Op;
using testing::within;

TransformerLayerOptions scaled_layer(bool norm_first) {
  return TransformerLayerOptions(8, 2)
      .d_ff(12)
      .dropout(0.0)
      .norm_first(norm_first)
      .layer_scale(0.1);
}

// Initial values would hide what is not read.
template <typename Holder>
Holder drawn(Holder model) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) parameter.add_(torch::randn_like(parameter), 0.2);
  model->eval();
  return model;
}

// Multiplies the rows of each linear layer before a scale, so that the scale can be ones.
void fold(LayerScale& scale, torch::nn::Linear& linear) {
  linear->weight.mul_(scale->lambda1.unsqueeze(1));
  linear->bias.mul_(scale->lambda1);
  scale->lambda1.fill_(1.0);
}

TEST(LayerScale, MultipliesEachChannel) {
  LayerScale scale(LayerScaleOptions(3).init(0.5));
  EXPECT_TRUE(bit_equal(scale->lambda1.detach(), torch::full({3}, 0.5)));
  {
    const torch::NoGradGuard no_grad;
    scale->lambda1.copy_(torch::tensor({1.0, 2.0, 3.0}));
  }
  EXPECT_TRUE(bit_equal(scale->forward(torch::ones({2, 3})).detach(),
                        torch::tensor({{1.0f, 2.0f, 3.0f}, {1.0f, 2.0f, 3.0f}})));
  scale->reset_parameters();
  EXPECT_TRUE(bit_equal(scale->lambda1.detach(), torch::full({3}, 0.5)));
  EXPECT_ERROR(LayerScale(0), c10::ValueError, "[LayerScale] d_model must be positive. Got 0");
  EXPECT_ERROR(LayerScale(LayerScaleOptions(2).init(INFINITY)), c10::ValueError,
               "[LayerScale] init must be finite. Got inf");
}

TEST(LayerScale, OfLayersStartsFromTheOption) {
  TransformerDecoderLayer layer(scaled_layer(false));
  for (const auto& scale : {layer->layer_scale1, layer->layer_scale2, layer->layer_scale3}) {
    EXPECT_TRUE(bit_equal(scale->lambda1.detach(), torch::full({8}, 0.1)));
  }
  EXPECT_TRUE(TransformerEncoderLayer(8, 2)->layer_scale1.is_empty()) << "none unless asked for";
  EXPECT_ERROR(TransformerEncoderLayer(scaled_layer(false).layer_scale(NAN)), c10::ValueError,
               "[TransformerEncoderLayer] layer_scale must be finite. Got nan");
}

TEST(LayerScale, OfAnEncoderScalesItsTwoBlocks) {
  const torch::NoGradGuard no_grad;
  for (const bool norm_first : {false, true}) {
    torch::manual_seed(testing::seed(1));
    auto layer = drawn(TransformerEncoderLayer(scaled_layer(norm_first)));
    const auto x = torch::randn({2, 5, 8});
    const auto expected = layer->forward(x);
    fold(layer->layer_scale1, layer->self_attn->out_proj);
    EXPECT_TRUE(within(Op::Layers, layer->forward(x), expected));
    fold(layer->layer_scale2, layer->linear2);
    EXPECT_TRUE(within(Op::Layers, layer->forward(x), expected));
    layer->linear2->bias.mul_(2.0);
    EXPECT_FALSE(within(Op::Layers, layer->forward(x), expected));
  }
}

TEST(LayerScale, OfADecoderScalesItsThreeBlocksAndSteps) {
  const torch::NoGradGuard no_grad;
  for (const bool norm_first : {false, true}) {
    torch::manual_seed(testing::seed(2));
    auto layer = drawn(TransformerDecoderLayer(scaled_layer(norm_first)));
    const auto x = torch::randn({2, 4, 8}), memory = torch::randn({2, 5, 8});
    const auto whole = layer->forward(x, memory, AttentionMask::causal());
    auto cache = layer->start(memory, 4);
    const auto first = layer->step(x.slice(1, 0, 3), cache);
    EXPECT_TRUE(
        within(Op::Layers, torch::cat({first, layer->step(x.slice(1, 3), cache)}, 1), whole));
    fold(layer->layer_scale1, layer->self_attn->out_proj);
    fold(layer->layer_scale2, layer->multihead_attn->out_proj);
    fold(layer->layer_scale3, layer->linear2);
    EXPECT_TRUE(within(Op::Layers, layer->forward(x, memory, AttentionMask::causal()), whole));
  }
}

TEST(LayerScale, IsPartOfAFrozenEncoder) {
  for (const bool norm_first : {false, true}) {
    torch::manual_seed(testing::seed(3));
    auto encoder =
        drawn(TransformerEncoder(TransformerEncoderOptions(scaled_layer(norm_first), 2)));
    const auto x = torch::randn({2, 5, 8});
    const auto frozen = freeze(encoder);
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(within(Op::Layers, frozen.forward(x), encoder->forward(x)));
    // Per layer, only the frozen model has the two products and their biases, and the source alone
    // its scales.
    const int64_t products = 2 * 4 * (8 * 8 + 8 + 8 * 12 + 8), scales = 2 * 4 * 2 * 8;
    int64_t all = 0;
    for (const auto& parameter : encoder->parameters()) all += parameter.numel() * 4;
    EXPECT_EQ(frozen.bytes().own, products);
    EXPECT_EQ(frozen.bytes().shared, all - products - scales);
    encoder->layers->ptr<TransformerEncoderLayerImpl>(1)->layer_scale2->lambda1.mul_(2.0);
    EXPECT_ERROR(frozen.forward(x), c10::Error, "layers.1.layer_scale2.lambda1");
  }
}

TEST(LayerScale, IsPartOfAFrozenDecoder) {
  const torch::NoGradGuard no_grad;
  for (const bool norm_first : {false, true}) {
    torch::manual_seed(testing::seed(4));
    Transformer model(
        TransformerOptions(11, 13).d_model(8).num_heads(2).d_ff(12).norm_first(norm_first));
    // A Transformer's own options have no layer scale: the stacks are exchanged.
    const auto layer = scaled_layer(norm_first);
    const int64_t count = static_cast<int64_t>(model->encoder->layers->size());
    const bool norm = !model->encoder->norm.is_empty();
    model->encoder = model->replace_module(
        "encoder", TransformerEncoder(TransformerEncoderOptions(layer, count).norm(norm)));
    model->decoder = model->replace_module(
        "decoder", TransformerDecoder(TransformerDecoderOptions(layer, count).norm(norm)));
    model = drawn(model);
    const auto src = torch::tensor({{3, 4, 5}, {6, 7, 8}}), tgt = torch::tensor({{1, 2}, {1, 9}});
    const auto frozen = freeze(model);
    const auto memory = model->encode(src);
    EXPECT_TRUE(within(Op::Layers, frozen.encode(src), memory));
    EXPECT_TRUE(within(Op::Logits, frozen.decode(tgt, memory), model->decode(tgt, memory)));
  }
}

}  // namespace
}  // namespace posenc
