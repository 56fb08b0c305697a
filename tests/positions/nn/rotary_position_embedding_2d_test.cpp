#include "posenc/positions/nn/rotary_position_embedding_2d.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/container/any.h>
#include <torch/utils.h>

#include <thread>

#include "posenc/models/rotary_config.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "support/compare.h"

namespace posenc::rotary_position_embedding_2d_test {
namespace {

using posenc::testing::bit_equal;
using posenc::testing::message_of;
using Options = RotaryPositionEmbedding2dOptions;

torch::Tensor first(const functional::QueryKey& pair) { return std::get<0>(pair); }

TEST(RotaryPositionEmbedding2d, RotatesByTheGridOfEachSystem) {
  for (const char* name :
       {"qwen2_vl_vision", "pixtral", "gemma4_vision", "llama4_vision", "dinov3", "sam2_video",
        "muse_vision", "step3p7_vision", "kimi_k25_vision", "inkling2_vision", "efficientloftr"}) {
    SCOPED_TRACE(name);
    const auto options = rotary_preset(name, 16);
    const auto table = rotary_cos_sin(options, rotary_grid(options, {4, 6}), torch::kBFloat16);
    const bool before = options.head_axis() == rotary::HeadAxis::BeforeLength;
    const int64_t tokens = table.cos.size(0);
    const auto shape =
        before ? std::vector<int64_t>{2, 4, tokens, 16} : std::vector<int64_t>{2, tokens, 4, 16};
    const auto q = torch::randn(shape).to(torch::kBFloat16);
    RotaryPositionEmbedding2d module(options);
    const auto how = functional::RotaryFuncOptions().head_axis(options.head_axis());
    EXPECT_TRUE(bit_equal(first(module->forward(q, q, 4, 6)),
                          first(functional::rotary(q, q, table, options, how))));
  }
}

TEST(RotaryPositionEmbedding2d, LeavesThePrefixAlone) {
  RotaryPositionEmbedding2d module(Options(rotary_preset("dinov3", 8)).prefix_tokens(5));
  const auto q = torch::randn({2, 3, 5 + 4 * 6, 8});
  const auto rotated = first(module->forward(q, {}, 4, 6));
  EXPECT_TRUE(bit_equal(rotated.narrow(2, 0, 5), q.narrow(2, 0, 5)));
  EXPECT_FALSE(bit_equal(rotated.narrow(2, 5, 24), q.narrow(2, 5, 24)));
}

TEST(RotaryPositionEmbedding2d, FramesRepeatOrHaveAnAxis) {
  RotaryPositionEmbedding2d image(rotary_preset("qwen2_vl_vision", 8));
  const auto one = image->cos_sin(2, 4), three = image->cos_sin(2, 4, 3);
  EXPECT_TRUE(bit_equal(three.cos, torch::cat({one.cos, one.cos, one.cos})));
  const auto options = rotary_preset("minimax_m3_vision", 12);
  RotaryPositionEmbedding2d video(options);
  const auto table = rotary_cos_sin(options, rotary_grid(options, {3, 2, 4}));
  EXPECT_TRUE(bit_equal(video->cos_sin(2, 4, 3).sin, table.sin));
}

// cos_sin() is the caller's own: the module's tables stay as they were.
TEST(RotaryPositionEmbedding2d, HandsOutCopies) {
  RotaryPositionEmbedding2d module(rotary_preset("dinov3", 8));
  const auto q = torch::randn({1, 2, 6, 8});
  const auto before = first(module->forward(q, {}, 2, 3));
  const auto table = module->cos_sin(2, 3);
  table.sin.neg_();
  table.cos.mul_(2.0);
  EXPECT_TRUE(bit_equal(first(module->forward(q, {}, 2, 3)), before));
}

TEST(RotaryPositionEmbedding2d, KeepsTablesOfEachGridAndDtype) {
  const auto options = rotary_preset("dinov3", 8);
  RotaryPositionEmbedding2d module(Options(options).cached_grids(2));
  for (const int64_t height : {2, 4, 5, 2, 5, 4}) {
    for (const auto dtype : {torch::kFloat, torch::kHalf}) {
      const auto expected = rotary_cos_sin(options, rotary_grid(options, {height, 3}), dtype);
      EXPECT_TRUE(bit_equal(module->cos_sin(height, 3, 1, dtype).cos, expected.cos));
    }
  }
}

TEST(RotaryPositionEmbedding2d, RefusesALearnedClassToken) {
  const auto mlcd = rotary_options_from_hf(R"({"model_type": "mlcd_vision_model"})");
  EXPECT_NE(message_of([&] { RotaryPositionEmbedding2d module(mlcd); }).find("(MLCD)"),
            std::string::npos);
  EXPECT_TRUE(
      bit_equal(rotary_grid(mlcd, {2, 2}), torch::tensor({0, 0, 0, 1, 1, 0, 1, 1}).view({4, 2})));
}

TEST(RotaryPositionEmbedding2d, TrainingMovesTheCoordinates) {
  const auto options = rotary_preset("dinov3", 8);
  RotaryPositionEmbedding2d module(Options(options).shift(0.5).jitter(1.1).rescale(2.0));
  const auto cos = [&](uint64_t seed) {
    torch::manual_seed(seed);
    return module->cos_sin(3, 4).cos;
  };
  torch::manual_seed(7);
  auto positions = rotary_grid(options, {3, 4});
  positions = positions + torch::empty({1, 2}).uniform_(-0.5, 0.5);
  positions = positions * torch::empty({1, 2}).uniform_(-std::log(1.1), std::log(1.1)).exp();
  positions = positions * torch::empty({1, 1}).uniform_(-std::log(2.0), std::log(2.0)).exp();
  EXPECT_TRUE(bit_equal(cos(7), rotary_cos_sin(options, positions).cos));
  EXPECT_FALSE(bit_equal(cos(7), cos(8)));
  module->eval();
  EXPECT_TRUE(bit_equal(cos(7), rotary_cos_sin(options, rotary_grid(options, {3, 4})).cos));
}

TEST(RotaryPositionEmbedding2d, GradientsFlowAfterInference) {
  RotaryPositionEmbedding2d module(rotary_preset("sam2_video", 8));
  {
    const c10::InferenceMode on;
    module->cos_sin(2, 2);
  }
  const auto q = torch::randn({1, 1, 4, 8}).requires_grad_();
  first(module->forward(q, {}, 2, 2)).sum().backward();
  EXPECT_TRUE(q.grad().defined());
}

TEST(RotaryPositionEmbedding2d, ManyThreadsMayUseIt) {
  RotaryPositionEmbedding2d module(Options(rotary_preset("dinov3", 8)).cached_grids(2));
  std::vector<std::thread> threads;
  std::vector<torch::Tensor> tables(8);
  for (size_t i = 0; i < tables.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int64_t size = 1; size < 6; ++size) tables[i] = module->cos_sin(size, 5).cos;
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& table : tables) EXPECT_TRUE(bit_equal(table, tables[0]));
}

TEST(RotaryPositionEmbedding2d, FitsIntoAnAnyModule) {
  RotaryPositionEmbedding2d module(rotary_preset("dinov3", 8));
  torch::nn::AnyModule any(module);
  const auto q = torch::randn({1, 1, 6, 8});
  const auto pair = any.forward<functional::QueryKey>(q, q, int64_t{2}, int64_t{3});
  EXPECT_TRUE(bit_equal(std::get<1>(pair), first(module->forward(q, q, 2, 3))));
}

TEST(RotaryPositionEmbedding2d, WrongOptionsAreErrors) {
  const auto refused = [](const Options& options) {
    return message_of([&] { RotaryPositionEmbedding2d{options}; });
  };
  const auto dinov3 = rotary_preset("dinov3", 8);
  EXPECT_EQ(refused(rotary_preset("llama", 8)),
            "[RotaryPositionEmbedding2d] rotary must have planes of an axial kind, two or three of "
            "them. Got another");
  EXPECT_EQ(refused(RotaryOptions(dinov3).axes(4)),
            "[RotaryPositionEmbedding2d] rotary must have planes of an axial kind, two or three of "
            "them. Got 4");
  EXPECT_EQ(refused(rotary_preset("musicflamingo", 8)),
            "[RotaryPositionEmbedding2d] rotary must have planes of an axial kind, two or three of "
            "them. Got 2, modulated");
  EXPECT_EQ(refused(rotary_preset("lightglue", 8)),
            "[RotaryPositionEmbedding2d] rotary must have frequencies of a formula. Got "
            "Frequency::Learned");
  EXPECT_EQ(refused(Options(dinov3).prefix_tokens(-1)),
            "[RotaryPositionEmbedding2d] prefix_tokens must not be negative. Got -1");
  EXPECT_EQ(refused(Options(dinov3).cached_grids(-1)),
            "[RotaryPositionEmbedding2d] cached_grids must not be negative. Got -1");
  EXPECT_EQ(refused(Options(dinov3).shift(-1.0)),
            "[RotaryPositionEmbedding2d] shift must be finite and not negative. Got -1");
  EXPECT_EQ(refused(Options(dinov3).jitter(0.5)),
            "[RotaryPositionEmbedding2d] jitter must be 0 or at least 1. Got 0.5");
  EXPECT_EQ(refused(Options(dinov3).rescale(0.5)),
            "[RotaryPositionEmbedding2d] rescale must be 0 or at least 1. Got 0.5");
}

TEST(RotaryPositionEmbedding2d, WrongInputsAreErrors) {
  RotaryPositionEmbedding2d module(rotary_preset("dinov3", 8));
  const auto q = torch::randn({1, 1, 6, 8});
  const auto refused = [&](const torch::Tensor& x, int64_t height, int64_t width) {
    return message_of([&] { module->forward(x, {}, height, width); });
  };
  EXPECT_EQ(refused({}, 2, 3), "[RotaryPositionEmbedding2d] q or k must be a tensor");
  EXPECT_EQ(refused(q.to(torch::kInt), 2, 3),
            "[RotaryPositionEmbedding2d] q and k must be floating-point. Got Int");
  EXPECT_EQ(
      refused(q, 2, 0),
      "[RotaryPositionEmbedding2d] height, width and frames must be positive. Got 2, 0 and 1");
  EXPECT_EQ(refused(q, 2, 4),
            "[rotary] cos and sin must have the batch and length of q and k. Got [8, 8] for "
            "[1, 1, 6, 8]");
}

}  // namespace
}  // namespace posenc::rotary_position_embedding_2d_test
