#include "posenc/transformer/transformer.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>

#include <cmath>
#include <sstream>

#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "posenc/weights/state_dict.h"
#include "support/compare.h"
#include "support/devices.h"
#include "transformer/tiny.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::OnEachDevice;
using testing::Op;
using testing::tiny;
using testing::tiny_model;

torch::Tensor ids(int64_t vocab, int64_t batch, int64_t length) {
  return torch::randint(1, vocab, {batch, length}, torch::kLong);
}

TEST(Transformer, HasTheNotebooksKeys) {
  const auto state = state_dict(*tiny_model());
  for (const char* key :
       {"src_embedding.token_embedding.weight", "src_embedding.position_encoding.pe",
        "tgt_embedding.token_embedding.weight", "tgt_embedding.position_encoding.pe",
        "encoder.layers.0.self_attn.in_proj_weight", "encoder.layers.1.self_attn.out_proj.bias",
        "encoder.layers.0.linear1.weight", "encoder.layers.0.linear2.bias",
        "encoder.layers.0.norm2.weight", "decoder.layers.0.multihead_attn.in_proj_bias",
        "decoder.layers.1.norm3.bias", "final_layer.weight", "final_layer.bias"}) {
    EXPECT_TRUE(state.contains(key)) << key;
  }
  EXPECT_FALSE(state.contains("encoder.norm.weight"));
  const auto pre_norm = state_dict(*tiny_model(tiny().norm_first(true)));
  EXPECT_TRUE(pre_norm.contains("encoder.norm.weight"));
  EXPECT_TRUE(pre_norm.contains("decoder.norm.bias"));
  const auto no_bias = state_dict(*tiny_model(tiny().bias(false)));
  EXPECT_FALSE(no_bias.contains("encoder.layers.0.norm1.bias"));
  EXPECT_TRUE(no_bias.contains("final_layer.bias"));
}

class TransformerOnDevices : public OnEachDevice {};
POSENC_ON_EACH_DEVICE(TransformerOnDevices);

// Decoding with the cache, one or several tokens at a time, gives the same as decode() on the
// prefix.
TEST_P(TransformerOnDevices, CachedEqualsUncached) {
  for (const bool norm_first : {false, true}) {
    auto model = tiny_model(tiny().norm_first(norm_first));
    model->to(device());
    const torch::NoGradGuard no_grad;
    auto src = ids(11, 3, 5);
    src[0].slice(0, 3) = 0, src[2].slice(0, 1) = 0;  // different lengths
    src = src.to(device());
    const auto tgt = ids(9, 3, 7).to(device());
    const auto padding = AttentionMask::padding(src, 0);
    const auto memory = model->encode(src, padding);
    const auto whole = model->decode(tgt, memory, AttentionMask::causal(), padding);  // (B, L, V)
    auto cache = model->start(memory, 7, padding);
    int64_t done = 0;
    for (const int64_t count : {1, 1, 3, 1, 1}) {
      const auto logits = model->step(tgt.narrow(1, done, count), cache);
      done += count;
      EXPECT_EQ(cache.length(), done);
      EXPECT_TRUE(testing::within(Op::Layers, logits, whole.select(1, done - 1)));
    }
    EXPECT_ERROR(model->step(tgt.narrow(1, 0, 1), cache), c10::ValueError, "capacity is 7");
  }
}

// Hugging Face's attention_mask as its tokenizers return it, with B == S: the memory of each
// sequence is the same as if the sequence were encoded alone.
TEST(Transformer, ReadsHuggingFacesMaskWhereBatchAndLengthAreEqual) {
  auto model = tiny_model();
  const torch::NoGradGuard no_grad;
  const auto src = ids(11, 4, 4);
  const auto attention_mask =
      torch::tensor({{1, 1, 1, 1}, {1, 0, 0, 0}, {1, 1, 1, 0}, {1, 1, 0, 0}}, torch::kLong);
  for (const auto dtype : {torch::kLong, torch::kInt, torch::kByte, torch::kBool}) {
    const auto mask = AttentionMask::key_padding(attention_mask.to(dtype));
    const auto memory = model->encode(src, mask);
    for (int64_t b = 0; b < 4; ++b) {
      const int64_t length = attention_mask[b].sum().item<int64_t>();
      const auto alone = model->encode(src[b].slice(0, 0, length).unsqueeze(0))[0];
      EXPECT_TRUE(testing::within(Op::Layers, memory[b].slice(0, 0, length), alone)) << dtype;
    }
  }
}

// A mask that depends on the query has the same effect in a step as on that row in decode().
TEST(Transformer, StepsFollowMasksOfEachQuery) {
  auto model = tiny_model();
  const torch::NoGradGuard no_grad;
  const auto src = ids(11, 3, 5), tgt = ids(9, 3, 7);
  auto tokens = torch::ones({3, 5}, torch::kLong);
  tokens[1].slice(0, 3) = 0;
  const auto memory = model->encode(src);
  for (const auto& mask :
       {AttentionMask::causal(), AttentionMask::causal(1) & AttentionMask::key_padding(tokens),
        AttentionMask::allowed_pairs(torch::rand({7, 5}) < 0.5),
        AttentionMask::additive(torch::randn({3, 2, 7, 5})) & AttentionMask::causal(-1)}) {
    const auto whole = model->decode(tgt, memory, AttentionMask::causal(), mask);  // (B, L, V)
    auto cache = model->start(memory, 7, mask);
    int64_t done = 0;
    for (const int64_t count : {1, 2, 1, 3}) {
      const auto logits = model->step(tgt.narrow(1, done, count), cache);
      done += count;
      EXPECT_TRUE(testing::within(Op::Layers, logits, whole.select(1, done - 1))) << done;
    }
    auto two = model->start(memory, 7, mask);
    const auto kept = torch::tensor({2, 1});
    two.select(kept);
    const auto logits = model->step(tgt.index_select(0, kept).narrow(1, 0, 4), two);
    EXPECT_TRUE(testing::within(Op::Layers, logits, whole.select(1, 3).index_select(0, kept)));
  }
  EXPECT_ERROR(model->start(memory, 7, AttentionMask::allowed_pairs(torch::rand({6, 5}) < 0.5)),
               c10::ValueError, "must broadcast to the scores (B, H, L, S) = [3, 2, 7, 5]");
}

TEST(Transformer, PaddingChangesNothing) {
  auto model = tiny_model();
  const torch::NoGradGuard no_grad;
  const auto src = ids(11, 1, 3), tgt = ids(9, 1, 4);
  const auto padded = torch::cat({src, torch::zeros({1, 2}, torch::kLong)}, 1);
  EXPECT_TRUE(testing::within(Op::Layers,
                              model->forward(padded, tgt, AttentionMask::padding(padded, 0)),
                              model->forward(src, tgt)));
}

TEST(Transformer, SrcMaskServesTheMemoryUnlessThereIsAnother) {
  auto model = tiny_model();
  const auto src = ids(11, 2, 4), tgt = ids(9, 2, 3);
  const auto mask = AttentionMask::key_padding(torch::tensor({{1, 0, 1, 1}, {1, 1, 1, 0}}));
  const auto both = model->forward(src, tgt, mask);
  EXPECT_TRUE(bit_equal(both, model->forward(src, tgt, mask, {}, mask)));
  EXPECT_FALSE(bit_equal(both, model->forward(src, tgt, mask, {}, AttentionMask())));
}

TEST(Transformer, ASourceOfPaddingAloneGivesNoNaN) {
  auto model = tiny_model();
  const auto src = torch::zeros({2, 3}, torch::kLong), tgt = ids(9, 2, 3);
  const auto out =
      model->forward(src, tgt, AttentionMask::padding(src, 0), AttentionMask::causal());
  EXPECT_TRUE(out.isfinite().all().item<bool>());
  out.sum().backward();
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(item.value().grad().isfinite().all().item<bool>()) << item.key();
  }
}

TEST(Transformer, KeepsDefaultArguments) {
  auto model = tiny_model();
  const auto src = ids(11, 2, 4), tgt = ids(9, 2, 3);
  torch::nn::AnyModule any(model);
  EXPECT_TRUE(bit_equal(any.forward(src, tgt), model->forward(src, tgt)));
  torch::nn::Sequential encoder(model->src_embedding, model->encoder);
  EXPECT_TRUE(bit_equal(encoder->forward(src), model->encode(src)));
}

TEST(Transformer, PrintsItsOptions) {
  std::ostringstream text;
  text << *tiny_model(tiny(Tying::ThreeWay));
  EXPECT_EQ(
      text.str().rfind("posenc::Transformer(src_vocab=9, tgt_vocab=9, d_model=8, num_heads=2, "
                       "num_encoder_layers=2, num_decoder_layers=2, d_ff=12, max_len=16, "
                       "tie=ThreeWay, dropout=0)",
                       0),
      0u)
      << text.str();
}

// As in Marian models: another decoder, another sinusoid, no scale.
TEST(Transformer, ItsDecoderAndItsEmbeddingsMayBeOthers) {
  auto model = tiny_model(tiny()
                              .decoder_num_heads(4)
                              .decoder_d_ff(20)
                              .scale(Scale::None)
                              .sinusoid(preset("hf_marian", 8)));
  auto* layer = model->decoder->layers[1]->as<TransformerDecoderLayerImpl>();
  EXPECT_EQ(layer->multihead_attn->options.num_heads(), 4);
  EXPECT_EQ(layer->linear1->options.out_features(), 20);
  auto* first = model->encoder->layers[0]->as<TransformerEncoderLayerImpl>();
  EXPECT_EQ(first->self_attn->options.num_heads(), 2);
  EXPECT_EQ(first->linear1->options.out_features(), 12);
  const auto table = sinusoid_table(preset("hf_marian", 8), 16);
  for (auto* embedding : {&model->src_embedding, &model->tgt_embedding}) {
    EXPECT_TRUE(bit_equal((*embedding)->position_encoding->pe[0], table));
    const auto expected = (*embedding)->token_embedding->weight.narrow(0, 3, 1) + table[0];
    EXPECT_TRUE(bit_equal((*embedding)->forward(torch::tensor({{3}}))[0], expected));
  }
  std::ostringstream text;
  text << *model;
  EXPECT_PRED_FORMAT2(::testing::IsSubstring,
                      ", decoder_num_heads=4, decoder_d_ff=20, max_len=16, scale=none, ",
                      text.str());
}

TEST(Transformer, ResetsToTheDistributionItBeganWith) {
  auto model = tiny_model(tiny(Tying::ThreeWay));
  const auto src = ids(9, 2, 3);
  const auto before = model->forward(src, src);
  model->reset_parameters();
  EXPECT_FALSE(bit_equal(model->forward(src, src), before));
  const auto largest = [&](const char* name) {
    return model->named_parameters()[name].abs().max().item<double>();
  };
  for (const char* name : {"encoder.layers.1.linear1.weight", "decoder.layers.0.linear2.weight"}) {
    const double bound = std::sqrt(6.0 / (8 + 12));  // Xavier uniform
    EXPECT_LE(largest(name), bound) << name;
    EXPECT_GE(largest(name), 0.8 * bound) << name;
  }
  EXPECT_LE(largest("final_layer.bias"), 1 / std::sqrt(8.0));
  EXPECT_GE(largest("final_layer.bias"), 0.4 / std::sqrt(8.0));
}

TEST(TransformerErrors, NamesWhatIsWrong) {
  EXPECT_ERROR(Transformer(tiny().num_heads(3)), c10::ValueError,
               "[Transformer] num_heads must divide d_model 8. Got 3");
  EXPECT_ERROR(Transformer(tiny().tgt_vocab(0)), c10::ValueError, "tgt_vocab must be positive");
  EXPECT_ERROR(Transformer(tiny().num_encoder_layers(0)), c10::ValueError, "num_layers");
  auto model = tiny_model();
  const auto src = ids(11, 2, 4), tgt = ids(9, 2, 3);
  EXPECT_ERROR(model->forward(src[0], tgt), c10::ValueError, "src and tgt must be ids");
  EXPECT_ERROR(model->forward(src, ids(9, 3, 3)), c10::ValueError, "src and tgt must be ids");
  EXPECT_ERROR(model->forward(src, ids(9, 2, 17)), c10::ValueError,
               "sequence length 17 exceeds max_len 16");
  EXPECT_ERROR(model->forward(src, tgt.to(torch::kFloat)), c10::TypeError, "must be integers");
  EXPECT_ERROR(model->forward(src, tgt + 9), c10::IndexError, "every id must lie in");
  EXPECT_ERROR(
      model->forward(src, tgt, AttentionMask::allowed_pairs(torch::ones({3, 3}, torch::kBool))),
      c10::ValueError, "must broadcast to the scores");
  EXPECT_ERROR(model->encode(src[0]), c10::ValueError, "src must be ids (B, S)");
  EXPECT_ERROR(model->decode(tgt[0], model->encode(src)), c10::ValueError, "tgt must be ids");
  EXPECT_ERROR(model->start(model->encode(src), 17), c10::ValueError, "at most max_len 16");
  EXPECT_ERROR(model->final_layer->tie(torch::nn::Embedding(9, 7)), c10::ValueError,
               "the embedding must be (9, 8)");
  EXPECT_ERROR(model->tgt_embedding->share_tokens(torch::nn::Embedding(8, 8)), c10::ValueError,
               "shared tokens must be (vocab_size, d_model) = [9, 8]");
}

TEST(TransformerSteps, ReturnTheWeightsOfTheirOwnTokens) {
  const torch::NoGradGuard no_grad;
  auto model = tiny_model(tiny());
  auto cache = model->start(model->encode(torch::randint(11, {2, 5}, torch::kLong)), 4);
  std::vector<torch::Tensor> of_layers;
  torch::Tensor average;
  for (int64_t step = 0; step < 2; ++step) {
    const auto x = model->tgt_embedding->forward(torch::randint(9, {2, 1}, torch::kLong), step);
    model->decoder->step(x, cache, &average, &of_layers);
    ASSERT_EQ(of_layers.size(), 2U);
    EXPECT_TRUE(bit_equal(of_layers[1].mean(1), average));
  }
}

}  // namespace
}  // namespace posenc
