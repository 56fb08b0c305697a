// Frozen Transformers whose source is features of sound.

#include <gtest/gtest.h>

#include <functional>

#include "posenc/inference/freeze.h"
#include "support/compare.h"
#include "transformer/tiny.h"

namespace posenc::testing {
namespace {

TEST(FrozenFeatures, AreThoseOfTheModule) {
  const torch::NoGradGuard no_grad;
  constexpr int64_t kFrames = 20;  // 10 rows of a sound, more than the kernels for few rows take
  for (const bool learned : {false, true}) {
    auto model = tiny_model(tiny_hearing().src_features(
        AudioEmbeddingsOptions(kTinyBins, 8, kFrames).learned_positions(learned)));
    const auto src = torch::randn({3, kTinyBins, kFrames});
    const auto tgt = torch::randint(9, {3, 4}, torch::kLong);
    const auto memory = model->encode(src);
    const auto frozen = freeze(model);
    const auto got = frozen.encode(src);
    EXPECT_TRUE(within(Op::Layers, got, memory));
    EXPECT_TRUE(within(Op::Layers, frozen.decode(tgt, memory), model->decode(tgt, memory)));
    for (int64_t i = 0; i < 3; ++i)  // its own bits, alone and from a view
      EXPECT_TRUE(bit_equal(
          frozen.encode(src.transpose(1, 2).contiguous().transpose(1, 2).narrow(0, i, 1))[0],
          got[i]));
    EXPECT_TRUE(within(Op::Layers,
                       freeze(model, FreezeOptions().gemm(GemmBackend::ATen)).encode(src), memory));
    auto keys = torch::ones({3, kFrames / 2}, torch::kBool);
    keys[1].slice(0, 3) = false;
    const auto mask = AttentionMask::key_padding(keys);
    EXPECT_TRUE(within(Op::Layers, frozen.encode(src, mask).index({keys}),
                       model->encode(src, mask).index({keys})));
    EXPECT_EQ(frozen.encode(src.narrow(0, 0, 0)).sizes(),
              (std::vector<int64_t>{0, kFrames / 2, 8}));
    model->src_features->conv1->weight.mul_(2.0);
    EXPECT_ERROR(frozen.encode(src), c10::Error, "other values in src_features.conv1.weight");
  }
}

TEST(FrozenFeatures, RefuseOtherSources) {
  const auto frozen = freeze(tiny_model(tiny_hearing()));
  const auto src = tiny_sounds(2);
  const auto refused = [&](const torch::Tensor& features, const char* text) {
    EXPECT_ERROR(frozen.encode(features), c10::ValueError, text);
  };
  refused(src.narrow(2, 0, 10), "[FrozenTransformer] features must be (B, 5, 12), mel bins and");
  refused(src.narrow(1, 0, 4), "Got [2, 4, 12]");
  refused(torch::zeros({2, 4}, torch::kLong), "Got [2, 4]");
  refused({}, "Got an undefined tensor");
  EXPECT_ERROR(frozen.encode(src.to(torch::kDouble)), c10::TypeError, "Got Double");
}

TEST(FrozenFeatures, FreezingRefusesOtherParts) {
  const auto refused = [](const char* text,
                          const std::function<void(AudioEmbeddingsImpl&)>& change) {
    auto model = tiny_model(tiny_hearing());
    change(*model->src_features);
    EXPECT_ERROR(freeze(model), c10::ValueError, text);
  };
  refused("[freeze] src_features.conv1 must be the convolution that its embeddings make",
          [](AudioEmbeddingsImpl& own) { own.conv1->options.padding(0); });
  refused("[freeze] src_features.conv2 must be the convolution that its embeddings make",
          [](AudioEmbeddingsImpl& own) { own.conv2->options.stride(1); });
  refused("[freeze] src_features.conv2.weight must be [8, 8, 3]", [](AudioEmbeddingsImpl& own) {
    own.conv2 = own.replace_module(
        "conv2", torch::nn::Conv1d(torch::nn::Conv1dOptions(8, 8, 5).stride(2).padding(1)));
  });
  refused("[freeze] src_features.conv1 must be a module. Got an empty holder",
          [](AudioEmbeddingsImpl& own) { own.conv1 = nullptr; });
  refused("[freeze] src_features.position_encoding.pe must be [1, 6, 8]. Got [1, 7, 8]",
          [](AudioEmbeddingsImpl& own) {
            own.position_encoding = own.replace_module(
                "position_encoding", PositionalEncoding(PositionalEncodingOptions(8, 7)));
          });
}

}  // namespace
}  // namespace posenc::testing
