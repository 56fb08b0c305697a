#include "posenc/positions/nn/audio_embeddings.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/erf.h>
#include <gtest/gtest.h>

#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "support/autocast.h"
#include "support/compare.h"

namespace posenc {
namespace {

using testing::bit_equal;

constexpr int64_t kBins = 3, kWide = 8, kFrames = 10;

AudioEmbeddingsOptions small_audio() { return {kBins, kWide, kFrames}; }

torch::Tensor sounds() { return torch::randn({2, kBins, kFrames}); }

torch::Tensor exact_gelu(const torch::Tensor& x) {
  return 0.5 * x * (1.0 + torch::erf(x / std::sqrt(2.0)));
}

// The frames (B, W, in) times the weight (out, in, 3) of each of three neighbours, every
// `stride`-th.
torch::Tensor convolved(const torch::Tensor& frames, const torch::nn::Conv1d& conv,
                        int64_t stride) {
  const auto edge = torch::zeros_like(frames.narrow(1, 0, 1));
  const auto padded = torch::cat({edge, frames, edge}, 1);
  auto sum = conv->bias.expand({frames.size(0), frames.size(1), -1});
  for (int64_t k = 0; k < 3; ++k)
    sum = sum + padded.narrow(1, k, frames.size(1)).matmul(conv->weight.select(2, k).t());
  return sum.slice(1, 0, frames.size(1), stride);
}

TEST(AudioEmbeddings, AreTwoConvolutionsAndPositions) {
  torch::manual_seed(1);
  for (const bool learned : {false, true}) {
    AudioEmbeddings embeddings(small_audio().learned_positions(learned));
    const auto features = sounds();
    const auto narrow = exact_gelu(convolved(features.transpose(1, 2), embeddings->conv1, 1));
    const auto table = learned ? embeddings->position_embedding->weight
                               : sinusoid_table(preset("hf_whisper", kWide), kFrames / 2);
    const auto expected = exact_gelu(convolved(narrow, embeddings->conv2, 2)) + table;
    const auto got = embeddings->forward(features);
    EXPECT_TRUE(torch::allclose(got, expected, 1e-5, 1e-6));
    EXPECT_EQ(got.sizes(), (std::vector<int64_t>{2, kFrames / 2, kWide}));
    EXPECT_TRUE(torch::allclose(embeddings->forward(features.narrow(0, 1, 1)), got.narrow(0, 1, 1),
                                1e-6, 1e-6));
  }
}

TEST(AudioEmbeddings, HaveAnotherSinusoidIfTheirOptionsDo) {
  const auto other = preset("vaswani2017", kWide);
  const AudioEmbeddings embeddings(small_audio().sinusoid(other));
  EXPECT_TRUE(bit_equal(embeddings->position_encoding->pe[0], sinusoid_table(other, kFrames / 2)));
}

TEST(AudioEmbeddings, DropInTrainingOnly) {
  torch::manual_seed(2);
  AudioEmbeddings embeddings(small_audio().dropout(0.5));
  const auto features = sounds();
  EXPECT_TRUE(embeddings->forward(features).eq(0).any().item<bool>());
  embeddings->eval();
  EXPECT_FALSE(embeddings->forward(features).eq(0).any().item<bool>());
}

TEST(AudioEmbeddings, DrawNewWeights) {
  AudioEmbeddings embeddings(small_audio().learned_positions(true));
  for (const auto& item : embeddings->named_parameters()) {
    const auto before = item.value().detach().clone();
    embeddings->reset_parameters();
    EXPECT_FALSE(bit_equal(item.value().detach(), before)) << item.key();
  }
}

TEST(AudioEmbeddings, RefuseOtherFeatures) {
  AudioEmbeddings embeddings(small_audio());
  const auto refused = [&](const torch::Tensor& features, const char* text) {
    EXPECT_ERROR(embeddings->forward(features), c10::ValueError, text);
  };
  refused(torch::zeros({2, kBins, kFrames + 2}),
          "features must be (B, 3, 10), mel bins and frames");
  refused(torch::zeros({2, kBins + 1, kFrames}), "Got [2, 4, 10]");
  refused(torch::zeros({kBins, kFrames}), "Got [3, 10]");
  refused({}, "Got an undefined tensor");
  EXPECT_ERROR(embeddings->forward(torch::zeros({2, kBins, kFrames}, torch::kDouble)),
               c10::TypeError, "features must have the dtype of the weights, Float. Got Double");
}

// As a convolution of LibTorch does.
TEST(AudioEmbeddings, TakeEachDtypeThatAutocastConverts) {
  torch::manual_seed(3);
  AudioEmbeddings embeddings(small_audio());
  const auto features = sounds().to(torch::kBFloat16);
  EXPECT_ERROR(embeddings->forward(features), c10::TypeError, "Got BFloat16");
  const testing::Autocast autocast;
  const auto expected = embeddings->forward(features.to(torch::kFloat));
  EXPECT_TRUE(bit_equal(embeddings->forward(features), expected));
  EXPECT_EQ(embeddings->forward(features.to(torch::kHalf)).scalar_type(), expected.scalar_type());
  EXPECT_ERROR(embeddings->forward(features.to(torch::kDouble)), c10::TypeError, "Got Double");
  EXPECT_ERROR(embeddings->forward(features.to(torch::kLong)), c10::TypeError, "Got Long");
}

TEST(AudioEmbeddings, RefuseOtherSizes) {
  const auto refused = [&](const AudioEmbeddingsOptions& options, const char* text) {
    EXPECT_ERROR(AudioEmbeddings{options}, c10::ValueError, text);
  };
  refused(small_audio().num_frames(9), "num_frames must be even and positive. Got 9");
  refused(small_audio().num_frames(0), "num_frames must be even and positive. Got 0");
  refused(small_audio().num_mel_bins(0), "num_mel_bins must be positive. Got 0");
  refused(small_audio().dropout(1.0), "dropout must lie in [0, 1). Got 1");
}

}  // namespace
}  // namespace posenc
