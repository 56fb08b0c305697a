// Errors of attention, layers and stacks, and names of their options.

#include <gtest/gtest.h>

#include "posenc/positions/rotary/rotary_preset.h"
#include "posenc/transformer/layers/transformer_decoder.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "support/compare.h"

namespace posenc {
namespace {

TEST(LayerErrors, RejectOptionsThatNoLayerHas) {
  EXPECT_ERROR(MultiheadAttention(10, 3), c10::ValueError,
               "[MultiheadAttention] num_heads must divide embed_dim 10. Got 3");
  EXPECT_ERROR(TransformerEncoderLayer(10, 3), c10::ValueError,
               "[TransformerEncoderLayer] num_heads must divide d_model 10. Got 3");
  EXPECT_ERROR(TransformerDecoderLayer(10, 0), c10::ValueError, "num_heads must be positive");
  EXPECT_ERROR(TransformerEncoderLayer(TransformerLayerOptions(10, 2).dropout(1.0)),
               c10::ValueError, "dropout must lie in [0, 1)");
  EXPECT_ERROR(TransformerEncoderLayer(TransformerLayerOptions(10, 2).d_ff(0)), c10::ValueError,
               "d_ff must be positive");
  EXPECT_ERROR(TransformerEncoder(TransformerEncoderOptions({10, 2}, 0)), c10::ValueError,
               "num_layers must be positive");
  EXPECT_ERROR(TransformerDecoder(TransformerDecoderOptions({10, 2}, 0)), c10::ValueError,
               "num_layers must be positive");
  for (const int64_t outside : {-1, 2}) {
    EXPECT_ERROR(TransformerEncoder(TransformerEncoderOptions({10, 2}, 2).order({0, outside})),
                 c10::ValueError,
                 "[TransformerEncoder] order must have indices of layers, in [0, 2). Got " +
                     std::to_string(outside));
  }
  EXPECT_ERROR(
      activation_of("gelo"), c10::ValueError,
      "[activation_of] the name must be that of an activation of transformers that posenc has; "
      "the nearest are gelu");
  EXPECT_ERROR(activation_of_class("GELUTanh"), c10::ValueError,
               "[activation_of_class] the name must be that of an activation in torch.nn");
}

TEST(LayerErrors, RejectInputsOfOtherShapes) {
  TransformerEncoder encoder(TransformerEncoderOptions({8, 2}, 1));
  TransformerDecoder decoder(
      TransformerDecoderOptions(TransformerLayerOptions(8, 2).batch_first(false), 1));
  const auto x = torch::randn({3, 4, 8});
  EXPECT_ERROR(encoder->forward(x[0]), c10::ValueError,
               "[TransformerEncoder] a sequence must be (B, L, 8). Got [4, 8]");
  EXPECT_ERROR(encoder->forward(torch::randn({3, 4, 9})), c10::ValueError, "must be (B, L, 8)");
  EXPECT_ERROR(decoder->forward(x, x[0]), c10::ValueError, "must be (L, B, 8)");
  EXPECT_ERROR(decoder->forward(x, torch::randn({3, 5, 8})), c10::ValueError, "one batch");
  EXPECT_ERROR(decoder->start(x[0], 4), c10::ValueError, "memory must be (B, S, 8)");
  const auto wrong = AttentionMask::allowed_pairs(torch::ones({5, 5}, torch::kBool));
  EXPECT_ERROR(encoder->forward(x, wrong), c10::ValueError, "must broadcast to the scores");
  EXPECT_ERROR(decoder->forward(x, x, {}, wrong), c10::ValueError, "must broadcast to the scores");
}

// Broadcasting would give one row's result for all of them, or all rows' results for one.
TEST(LayerErrors, RejectStepsOfAnotherBatch) {
  TransformerDecoder decoder(TransformerDecoderOptions({8, 2}, 2));
  const torch::NoGradGuard no_grad;
  const auto memory = torch::randn({3, 4, 8});
  auto cache = decoder->start(memory, 2);
  for (const int64_t batch : {1, 2, 4}) {
    EXPECT_ERROR(decoder->step(torch::randn({batch, 1, 8}), cache), c10::ValueError,
                 "[KeyValueCache] keys must be (B, H, t, Dh) as in the cache");
  }
  EXPECT_ERROR(decoder->step(torch::randn({3, 8}), cache), c10::ValueError, "must be (B, t, 8)");
  EXPECT_ERROR(decoder->step(torch::randn({3, 3, 8}), cache), c10::ValueError,
               "[TransformerDecoder] the capacity is 2 tokens. Got token 3");
  TransformerDecoder shallow(TransformerDecoderOptions({8, 2}, 1));
  EXPECT_ERROR(shallow->step(torch::randn({3, 1, 8}), cache), c10::ValueError,
               "of 1 layers. Got 2");
  EXPECT_EQ(cache.length(), 0);
  EXPECT_EQ(decoder->step(torch::randn({3, 2, 8}), cache).size(0), 3) << "after the errors";
}

TEST(LayerErrors, RejectStepsWithARotaryEmbedding) {
  const MultiheadAttention rotating(MultiheadAttentionOptions(8, 2).rotary(
      RotaryEmbeddingOptions(RotaryOptions(4, rotary::Pairing::Halves))));
  for (const bool own : {true, false}) {
    TransformerDecoderLayer layer(8, 2);
    (own ? layer->self_attn : layer->multihead_attn) = rotating;
    EXPECT_ERROR(layer->start(torch::randn({3, 4, 8}), 2), c10::ValueError,
                 "steps are not implemented for attention with a rotary embedding");
  }
}

TEST(LayerErrors, RejectLayersOfAnotherClass) {
  TransformerEncoder encoder(TransformerEncoderOptions({8, 2}, 1));
  TransformerDecoder decoder(TransformerDecoderOptions({8, 2}, 1));
  encoder->layers->push_back(torch::nn::Linear(8, 8));
  decoder->layers->push_back(torch::nn::Linear(8, 8));
  const auto x = torch::randn({3, 4, 8});
  const char* of_encoder =
      "[TransformerEncoder] each layer must be a TransformerEncoderLayer, a "
      "BottleneckEncoderLayer or a ConformerEncoderLayer. Got";
  EXPECT_ERROR(encoder->forward(x), c10::ValueError, of_encoder);
  EXPECT_ERROR(encoder->reset_parameters(), c10::ValueError, of_encoder);
  const char* of_decoder = "must be a TransformerDecoderLayer. Got for layer 1 a ";
  EXPECT_ERROR(decoder->forward(x, x), c10::ValueError, of_decoder);
  EXPECT_ERROR(decoder->reset_parameters(), c10::ValueError, of_decoder);
  EXPECT_ERROR(decoder->start(x, 4), c10::ValueError, of_decoder);
}

MultiheadAttentionOptions rotating(int64_t dim) {
  return MultiheadAttentionOptions(8, 2).rotary(
      RotaryEmbeddingOptions(rotary_preset("llama", dim)));
}

TEST(LayerErrors, RejectARotaryEmbeddingOfAnotherWidth) {
  for (const int64_t dim : {2, 8}) {
    EXPECT_ERROR(MultiheadAttention(rotating(dim)), c10::ValueError,
                 "[MultiheadAttention] rotary must rotate the 4 channels of a head. Got " +
                     std::to_string(dim));
  }
  const auto part = [](int64_t dim) {
    return MultiheadAttentionOptions(8, 2).rotary(
        RotaryEmbeddingOptions(rotary_preset("gpt_neox", dim)));
  };
  EXPECT_ERROR(MultiheadAttention(part(6)), c10::ValueError,
               "rotary must rotate at most the 4 channels of a head. Got 6");
  const auto x = torch::randn({1, 3, 8});
  EXPECT_EQ(MultiheadAttention(part(2))->forward(x, x, x).sizes(), x.sizes());
}

// A layer whose attention was replaced by one that rotates is no layer that steps, but the whole
// sequence is rotated.
TEST(LayerErrors, RejectStepsOfAttentionThatRotates) {
  const torch::NoGradGuard no_grad;
  const char* rule =
      "[TransformerDecoderLayer] steps are not implemented for attention with a rotary embedding";
  const auto memory = torch::randn({2, 3, 8});
  for (const bool cross : {false, true}) {
    TransformerDecoderLayer layer(8, 2);
    layer->eval();
    const auto before = layer->forward(memory, memory);
    auto& attention = cross ? layer->multihead_attn : layer->self_attn;
    const MultiheadAttention plain = attention;
    attention = MultiheadAttention(rotating(4));
    attention->in_proj_weight.copy_(plain->in_proj_weight);
    attention->out_proj->weight.copy_(plain->out_proj->weight);
    EXPECT_ERROR(layer->start(memory, 4), c10::ValueError, rule);
    EXPECT_FALSE(layer->forward(memory, memory).equal(before));
  }
  TransformerEncoderLayer layer(8, 2);
  layer->eval();
  const auto before = layer->forward(memory), first = layer->forward(memory.slice(1, 0, 1));
  const MultiheadAttention plain = layer->self_attn;
  layer->self_attn = MultiheadAttention(rotating(4));
  layer->self_attn->in_proj_weight.copy_(plain->in_proj_weight);
  layer->self_attn->out_proj->weight.copy_(plain->out_proj->weight);
  EXPECT_FALSE(layer->forward(memory).equal(before));
  EXPECT_TRUE(torch::allclose(layer->forward(memory.slice(1, 0, 1)), first, 1e-5, 1e-6))
      << "position 0 is not rotated";
}

// If the query is shorter than the key, both are rotated by the frequencies of the longer.
TEST(LayerErrors, UnequalLengthsShareTheirFrequencies) {
  const torch::NoGradGuard no_grad;
  const auto options =
      rotary_preset("llama", 4).scaling(rotary::LongRope{{1, 1}, {2, 3}, 4, 4.0, {}});
  MultiheadAttention attention(
      MultiheadAttentionOptions(8, 2).rotary(RotaryEmbeddingOptions(options)));
  const auto y = torch::randn({1, 9, 8});
  // The first queries of the whole, which see all keys.
  const auto whole = attention->forward(y, y, y);
  const auto first =
      attention->forward(y.slice(1, 0, 3), y, y, {}, torch::arange(3), torch::arange(9));
  EXPECT_TRUE(torch::allclose(first, whole.slice(1, 0, 3), 1e-5, 1e-6));
}

TEST(Activation, HasNames) {
  for (const auto* name : {"relu", "gelu", "swish", "gelu_tanh", "quick_gelu"})
    EXPECT_EQ(to_string(activation_of(name)), name);
  for (int i = 0; i <= static_cast<int>(Activation::Tanh); ++i) {
    const auto activation = static_cast<Activation>(i);
    EXPECT_EQ(activation_of(to_string(activation)), activation) << i;
  }
  EXPECT_EQ(activation_of_class("SiLU"), Activation::SiLU);
  EXPECT_EQ(activation_of("silu"), Activation::SiLU);
  for (const auto* name :
       {"gelu_new", "gelu_fast", "gelu_accurate", "gelu_pytorch_tanh", "gelu_python_tanh"})
    EXPECT_EQ(activation_of(name), Activation::GELUTanh) << name;
}

}  // namespace
}  // namespace posenc
