// Transformers whose source is features of sound.

#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <sstream>

#include "posenc/weights/state_dict.h"
#include "support/compare.h"
#include "transformer/tiny.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::kTinyFrames;
using testing::Op;
using testing::tiny_hearing;
using testing::tiny_model;
using testing::tiny_sounds;
using testing::within;

torch::Tensor tokens(int64_t batch = 2) { return torch::randint(9, {batch, 4}, torch::kLong); }

TEST(TransformerFeatures, HasTheKeysOfItsSource) {
  const auto state = state_dict(*tiny_model(tiny_hearing()));
  for (const char* key :
       {"src_features.conv1.weight", "src_features.conv2.bias", "src_features.position_encoding.pe",
        "tgt_embedding.position_embedding.weight", "encoder.layers.1.self_attn.in_proj_bias"})
    EXPECT_TRUE(state.contains(key)) << key;
  for (const auto& item : state)
    EXPECT_FALSE(item.key().starts_with("src_embedding")) << item.key();
}

TEST(TransformerFeatures, EncodesWhatItEmbeds) {
  auto model = tiny_model(tiny_hearing());
  const torch::NoGradGuard no_grad;
  const auto src = tiny_sounds(), tgt = tokens();
  const auto memory = model->encode(src);
  EXPECT_EQ(memory.sizes(), (std::vector<int64_t>{2, kTinyFrames / 2, 8}));
  EXPECT_TRUE(bit_equal(memory, model->encoder->forward(model->src_features->forward(src))));
  const auto causal = AttentionMask::causal();
  EXPECT_TRUE(bit_equal(model->forward(src, tgt, {}, causal), model->decode(tgt, memory, causal)));
  auto cache = model->start(memory, 4);
  EXPECT_TRUE(
      within(Op::Layers, model->step(tgt, cache), model->decode(tgt, memory, causal).select(1, 3)));
  const auto keys = torch::ones({2, kTinyFrames / 2}, torch::kBool);
  keys[0].slice(0, 4) = false;
  const auto mask = AttentionMask::key_padding(keys);
  EXPECT_FALSE(bit_equal(model->encode(src, mask)[0], memory[0]));
  EXPECT_TRUE(within(Op::Layers, model->encode(src, mask)[1], memory[1]));
}

TEST(TransformerFeatures, RefusesOtherSources) {
  auto model = tiny_model(tiny_hearing());
  const auto src = tiny_sounds(), tgt = tokens();
  const auto refused = [&](const torch::Tensor& features, const char* text) {
    EXPECT_ERROR(model->encode(features), c10::ValueError, text);
  };
  refused(src.narrow(2, 0, 10), "features must be (B, 5, 12), mel bins and frames of each sound");
  refused(src.narrow(1, 0, 4), "Got [2, 4, 12]");
  refused(tgt, "Got [2, 4]");
  refused({}, "Got an undefined tensor");
  EXPECT_ERROR(model->encode(src.to(torch::kDouble)), c10::TypeError, "must have the dtype");
  EXPECT_ERROR(model->forward(tgt, tgt), c10::ValueError,
               "src and tgt must be features (B, M, W) and ids (B, L). Got [2, 4] and [2, 4]");
  EXPECT_ERROR(model->forward(src, tokens(3)), c10::ValueError, "Got [2, 5, 12] and [3, 4]");
  auto reads = tiny_model();
  EXPECT_ERROR(reads->encode(src), c10::ValueError, "src must be ids (B, S). Got [2, 5, 12]");
}

TEST(TransformerFeatures, RefusesOptionsOfTokens) {
  const auto refused = [](const TransformerOptions& options, const char* text) {
    EXPECT_ERROR(Transformer{options}, c10::ValueError, text);
  };
  refused(tiny_hearing().src_vocab(9), "src_vocab must be 0 with src_features. Got 9");
  refused(tiny_hearing().d_model(16), "d_model of src_features must be d_model 16. Got 8");
  refused(tiny_hearing(Tying::ThreeWay),
          "tie must be Tying::None or DecoderOutput with src_features");
  refused(tiny_hearing(Tying::EncoderDecoder), "a source without tokens. Got encoder_decoder");
}

TEST(TransformerFeatures, ClonesAndTies) {
  auto model = tiny_model(tiny_hearing(Tying::DecoderOutput));
  const auto src = tiny_sounds(), tgt = tokens();
  const auto before = model->forward(src, tgt);
  const auto copy = std::dynamic_pointer_cast<TransformerImpl>(model->clone());
  EXPECT_TRUE(bit_equal(copy->forward(src, tgt), before));
  EXPECT_TRUE(
      copy->final_layer->effective_weight().is_same(copy->tgt_embedding->token_embedding->weight));
  ASSERT_EQ(model->tied_names().size(), 1U);
  EXPECT_EQ(model->tied_names()[0].alias, "final_layer.weight");
  copy->reset_parameters();
  for (const auto& item : copy->src_features->named_parameters())
    EXPECT_FALSE(bit_equal(item.value(), model->src_features->named_parameters()[item.key()]))
        << item.key();
  EXPECT_TRUE(bit_equal(model->forward(src, tgt), before));
}

TEST(TransformerFeatures, PrintsItsSource) {
  std::ostringstream text;
  tiny_model(tiny_hearing())->pretty_print(text);
  EXPECT_NE(text.str().find("src_features=(num_mel_bins=5, d_model=8, num_frames=12)"),
            std::string::npos)
      << text.str();
}

// A bias of keys adds one number to all scores of a query, which changes no weight of attention:
// without one, rows of zeros stay.
TEST(TransformerFeatures, KeysStayWithoutABias) {
  auto model = tiny_model(tiny_hearing());
  model->train();
  {
    const torch::NoGradGuard no_grad;
    for (auto& item : model->named_parameters())
      if (item.value().dim() == 1) item.value().normal_();
    for (auto& item : model->named_parameters())
      if (item.key().ends_with("in_proj_bias")) item.value().chunk(3)[1].zero_();
  }
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(0.1));
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    model->forward(tiny_sounds(), tokens(), {}, AttentionMask::causal()).square().sum().backward();
    optimizer.step();
  }
  int biases = 0;
  for (const auto& item : model->named_parameters()) {
    if (!item.key().ends_with("in_proj_bias")) continue;
    ++biases;
    const auto parts = item.value().detach().chunk(3);
    EXPECT_TRUE(parts[1].eq(0).all().item<bool>()) << item.key();
    EXPECT_FALSE(parts[2].eq(0).any().item<bool>()) << item.key();
  }
  EXPECT_EQ(biases, 6);  // four of self-attention, two of attention to the memory
}

}  // namespace
}  // namespace posenc
