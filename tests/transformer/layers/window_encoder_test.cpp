// Encoders whose attention is in windows of a map: Swin, Swin v2 and SAM.

#include "posenc/transformer/layers/window_encoder.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <algorithm>
#include <string>

#include "modules/drawn_module.h"
#include "posenc/models/encoder.h"
#include "posenc/models/frozen_encoder.h"
#include "posenc/transformer/attention/multihead_attention.h"
#include "posenc/transformer/functional/attention_mask.h"
#include "posenc/transformer/functional/window_partition.h"
#include "support/compare.h"
#include "support/threads.h"

namespace posenc::window_encoder_test {
namespace {

using relative::Grid;
using testing::bit_equal;
using testing::drawn;
using testing::Threads;

TransformerLayerOptions window_options(int64_t width, int64_t heads) {
  return TransformerLayerOptions(width, heads).d_ff(7).dropout(0.0).norm_first(true);
}

bool near(const torch::Tensor& a, const torch::Tensor& b) {
  return a.sizes() == b.sizes() &&
         (a - b).abs().max().item<double>() <= 1e-5 * std::max(1.0, b.abs().max().item<double>());
}

// Two stages with each kind of positions, and layers that are shifted.
WindowEncoderOptions two_stages(WindowPositions positions, bool res_post_norm) {
  std::vector<WindowStageOptions> stages;
  for (const int64_t width : {8, 16}) {
    std::vector<WindowEncoderLayerOptions> layers;
    for (const int64_t shift : {0, 1}) {
      layers.emplace_back(
          window_options(width, 2),
          WindowOptions({3, 3}).shift(shift).positions(positions).needs_room(false).res_post_norm(
              res_post_norm));
    }
    stages.emplace_back(std::move(layers));
  }
  stages.front().downsample(PatchMergingOptions(8).norm_first(!res_post_norm));
  return WindowEncoderOptions(std::move(stages));
}

Encoder encoder_of(const WindowEncoderOptions& windows) {
  VisionEmbeddingsOptions patches(8, 2, 8);
  patches.class_tokens(0).position_table(vision::PositionTable::None).pad_patches(true);
  return drawn(Encoder(EncoderOptions(patches, windows).pooling(encoder::Pooling::Mean)));
}

TEST(WindowPartition, HasAnInverse) {
  const auto x = torch::randn({2, 5, 7, 3});
  for (const int64_t shift : {0, 1, 2}) {
    const auto windows = functional::window_partition(x, {3, 2}, shift);
    EXPECT_EQ(windows.sizes(), (std::vector<int64_t>{2, 8, 6, 3}));
    EXPECT_TRUE(bit_equal(functional::window_unpartition(windows, {5, 7}, {3, 2}, shift), x));
  }
  EXPECT_EQ(functional::window_partition(x.narrow(0, 0, 0), {3, 2}, 1).sizes(),
            (std::vector<int64_t>{0, 8, 6, 3}));
  const auto rows = functional::window_partition(torch::arange(16).view({1, 4, 4, 1}), {2, 2}, 1);
  EXPECT_TRUE(bit_equal(rows[0][0].flatten(), torch::tensor({5, 6, 9, 10})));
  EXPECT_TRUE(bit_equal(rows[0][3].flatten(), torch::tensor({15, 12, 3, 0})));
  EXPECT_ERROR(functional::window_partition(x, {0, 2}), c10::ValueError, "positive sides");
  EXPECT_ERROR(functional::window_partition(x[0], {2, 2}), c10::ValueError, "(B, H, W, C)");
  EXPECT_ERROR(functional::window_unpartition(x, {5, 7}, {3, 2}), c10::ValueError, "(B, 8, 6, C)");
}

// The attention of all tokens with the mask of windows by name is the attention of each window.
TEST(WindowAttention, IsAttentionWithTheMaskOfWindows) {
  const torch::NoGradGuard no_grad;
  const Grid map = {6, 4};
  const auto x = torch::randn({2, map.height, map.width, 8});
  auto windows = drawn(WindowAttention(
      WindowAttentionOptions(8, 2, WindowOptions({2, 2}).positions(WindowPositions::None))));
  auto whole = MultiheadAttention(MultiheadAttentionOptions(8, 2));
  whole->in_proj_weight.copy_(windows->in_proj_weight);
  whole->in_proj_bias.copy_(windows->in_proj_bias);
  whole->out_proj->weight.copy_(windows->out_proj->weight);
  whole->out_proj->bias.copy_(windows->out_proj->bias);
  whole->eval();
  for (const int64_t shift : {0, 1}) {
    const auto mask = shift == 0 ? torch::Tensor() : shifted_window_mask(map, 2, shift);
    const auto parts = windows->forward(functional::window_partition(x, {2, 2}, shift), mask);
    const auto own = functional::window_unpartition(parts, map, {2, 2}, shift).flatten(1, 2);
    const auto tokens = x.flatten(1, 2);
    const auto all = whole->forward(tokens, tokens, tokens,
                                    AttentionMask::window(map.height, map.width, 2, shift));
    EXPECT_TRUE(near(own, all)) << shift;
  }
}

TEST(WindowAttention, ReturnsTheWeightsOfItsClass) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({1, 3, 4, 8});
  for (const auto positions : {WindowPositions::None, WindowPositions::Table,
                               WindowPositions::Continuous, WindowPositions::Axes}) {
    const WindowOptions windows = WindowOptions({2, 2}).positions(positions);
    auto attention = drawn(WindowAttention(WindowAttentionOptions(8, 2, windows).dropout(0.5)));
    attention->train();
    const auto weights = std::get<1>(attention->forward_with_weights(x));
    const bool is_sam = positions == WindowPositions::None || positions == WindowPositions::Axes;
    EXPECT_EQ(weights.ne(0).all().item<bool>(), is_sam) << "SAM's are before the dropout";
  }
}

TEST(WindowEncoderLayer, ShiftsAMapThatHasRoom) {
  const WindowOptions windows = WindowOptions({4, 4}).shift(2);
  EXPECT_EQ(windows.shift_of({5, 9}), 2);
  EXPECT_EQ(windows.shift_of({4, 9}), 0) << "a side is the window";
  EXPECT_ERROR(windows.shift_of({9, 3}), c10::ValueError,
               "a map must be at least as large as its window, 4 x 4");
  EXPECT_EQ(WindowOptions(windows).needs_room(false).shift_of({3, 3}), 2);
}

TEST(WindowAttention, RefusesOtherMasks) {
  WindowAttention attention(WindowAttentionOptions(8, 2, WindowOptions({2, 2})));
  const auto x = torch::randn({1, 3, 4, 8});
  EXPECT_ERROR(attention->forward(x, torch::zeros({2, 4, 4})), c10::ValueError,
               "mask must be (3, 4, 4). Got [2, 4, 4]");
  EXPECT_ERROR(attention->forward(x, torch::ones({3, 4, 4}, torch::kBool)), c10::TypeError,
               "mask must be real numbers, which are added to the scores. Got Bool");
}

TEST(WindowEncoderLayer, RefusesOptionsThatItHasNot) {
  const auto layer = [](const TransformerLayerOptions& options, const WindowOptions& windows) {
    return WindowEncoderLayer(WindowEncoderLayerOptions(options, windows));
  };
  const WindowOptions windows({4, 4});
  EXPECT_ERROR(layer(TransformerLayerOptions(8, 2), windows), c10::ValueError,
               "norm_first must be true");
  EXPECT_ERROR(layer(window_options(8, 2).qk_norm(true).norm_kind(NormKind::RMS), windows),
               c10::ValueError, "qk_norm must be its default");
  EXPECT_ERROR(layer(window_options(8, 2).grid_bias(Grid{4, 4}), windows), c10::ValueError,
               "grid_bias must be its default");
  EXPECT_ERROR(layer(window_options(8, 2).conformer(ConformerOptions(3)), windows), c10::ValueError,
               "conformer must be its default");
  EXPECT_ERROR(
      layer(window_options(8, 2).transformer_xl(TransformerXLOptions(SinusoidOptions(8))), windows),
      c10::ValueError, "transformer_xl must be its default");
  EXPECT_ERROR(layer(window_options(8, 2), WindowOptions({4, 4}).shift(4)), c10::ValueError,
               "shift must lie in [0, 4)");
  EXPECT_ERROR(layer(window_options(8, 2), WindowOptions({4, 3}).shift(1)), c10::ValueError,
               "must be square. Got 4 x 3");
  EXPECT_ERROR(layer(window_options(8, 3), windows), c10::ValueError, "num_heads must divide");
  auto one = layer(window_options(8, 2), windows);
  EXPECT_ERROR(one->forward(torch::randn({1, 4, 4, 7})), c10::ValueError, "(B, h, w, 8)");
  EXPECT_ERROR(one->forward(torch::randn({1, 3, 9, 8})), c10::ValueError, "Got 3 x 9");
}

TEST(WindowEncoder, RefusesStagesThatDoNotFollow) {
  auto options = two_stages(WindowPositions::Table, false);
  options.stages().front().downsample(std::nullopt);
  EXPECT_ERROR(WindowEncoder{options}, c10::ValueError, "d_model of stage 1");
  EXPECT_ERROR(WindowEncoder(WindowEncoderOptions({})), c10::ValueError, "at least one stage");
  const WindowEncoderOptions none({}), hollow({options.stages().front(), WindowStageOptions({})});
  const VisionEmbeddingsOptions patches(8, 2, 8);
  EXPECT_ERROR(EncoderOptions(patches, none), c10::ValueError, "at least one stage");
  EXPECT_ERROR(EncoderOptions(patches, hollow), c10::ValueError, "at least one layer");
  EXPECT_ERROR(WindowEncoder{hollow}, c10::ValueError, "at least one layer");
  auto necked = two_stages(WindowPositions::Table, false).neck(ConvolutionNeckOptions(16, 4));
  EXPECT_ERROR(WindowEncoder{necked}, c10::ValueError, "norm must be false with a neck");
}

TEST(WindowEncoder, GivesGradientsToAllParameters) {
  for (const auto positions :
       {WindowPositions::Table, WindowPositions::Continuous, WindowPositions::Axes}) {
    auto encoder = drawn(WindowEncoder(two_stages(positions, false)));
    encoder->train();
    encoder->forward(torch::randn({2, 7, 5, 8})).square().sum().backward();
    for (const auto& item : encoder->named_parameters()) {
      ASSERT_TRUE(item.value().grad().defined()) << item.key();
      EXPECT_GT(item.value().grad().abs().sum().item<float>(), 0.0F) << item.key();
    }
  }
}

TEST(WindowEncoder, FrozenEqualsItsSource) {
  const torch::NoGradGuard no_grad;
  for (const auto positions : {WindowPositions::None, WindowPositions::Table,
                               WindowPositions::Continuous, WindowPositions::Axes}) {
    for (const bool res_post_norm : {false, true}) {
      auto model = encoder_of(two_stages(positions, res_post_norm));
      const auto frozen = freeze(model);
      for (const auto& size : {Grid{12, 12}, Grid{17, 10}, Grid{3, 4}, Grid{23, 31}}) {
        const auto images = torch::randn({3, 3, size.height, size.width});
        const auto inputs = EncoderInputs().output_hidden_states(true);
        const auto expected = model->forward(images, inputs), got = frozen.forward(images, inputs);
        EXPECT_TRUE(near(got.last_hidden_state, expected.last_hidden_state));
        EXPECT_TRUE(near(got.pooled, expected.pooled));
        ASSERT_EQ(got.hidden_states.size(), expected.hidden_states.size());
        for (size_t i = 0; i < got.hidden_states.size(); ++i)
          EXPECT_TRUE(near(got.hidden_states[i], expected.hidden_states[i])) << i;
      }
    }
  }
}

TEST(WindowEncoder, TakesAnEmptyBatch) {
  const torch::NoGradGuard no_grad;
  const auto images = torch::randn({0, 3, 17, 10});
  const auto inputs = EncoderInputs().output_hidden_states(true);
  for (const auto positions : {WindowPositions::None, WindowPositions::Table,
                               WindowPositions::Continuous, WindowPositions::Axes}) {
    auto model = encoder_of(two_stages(positions, false));
    const auto expected = model->forward(images, inputs);
    const auto got = freeze(model).forward(images, inputs);
    EXPECT_EQ(expected.last_hidden_state.sizes(), (std::vector<int64_t>{0, 15, 16}));
    EXPECT_EQ(got.last_hidden_state.sizes(), expected.last_hidden_state.sizes());
    EXPECT_EQ(got.pooled.sizes(), expected.pooled.sizes());
    ASSERT_EQ(got.hidden_states.size(), expected.hidden_states.size());
    for (size_t i = 0; i < got.hidden_states.size(); ++i)
      EXPECT_EQ(got.hidden_states[i].sizes(), expected.hidden_states[i].sizes());
  }
}

TEST(WindowEncoder, FrozenHasTheSameBitsWithAnyThreads) {
  for (const auto positions :
       {WindowPositions::Table, WindowPositions::Continuous, WindowPositions::Axes}) {
    const auto frozen = freeze(encoder_of(two_stages(positions, false)));
    const auto images = torch::randn({2, 3, 30, 41});
    torch::Tensor one, three;
    {
      const Threads threads(1);
      one = frozen.forward(images).last_hidden_state;
    }
    {
      const Threads threads(3);
      three = frozen.forward(images).last_hidden_state;
    }
    EXPECT_TRUE(bit_equal(one, three));
  }
}

TEST(WindowEncoder, FrozenNoticesAChange) {
  auto model = encoder_of(two_stages(WindowPositions::Table, false));
  const auto frozen = freeze(model);
  const auto images = torch::randn({1, 3, 12, 12});
  frozen.forward(images);
  const torch::NoGradGuard no_grad;
  model->windows->stage(0).layer(0).self_attn->relative_position_bias_table.add_(1.0);
  EXPECT_ERROR(frozen.forward(images), c10::Error, "must not change once it is frozen");
  auto narrow = encoder_of(two_stages(WindowPositions::Table, false));
  narrow->windows->stage(0).layer(0).self_attn->relative_position_bias_table.set_data(
      torch::zeros({9, 2}));
  EXPECT_ERROR(freeze(narrow), c10::ValueError, "relative_position_bias_table must be [25, 2]");
}

TEST(WindowEncoder, ClonesAllPositions) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 5, 6, 8});
  for (const auto positions : {WindowPositions::None, WindowPositions::Table,
                               WindowPositions::Continuous, WindowPositions::Axes}) {
    auto model = drawn(WindowEncoder(two_stages(positions, false)));
    const auto copy = std::dynamic_pointer_cast<WindowEncoderImpl>(model->clone());
    const auto expected = model->forward(x);
    EXPECT_TRUE(bit_equal(copy->forward(x), expected));
    for (auto& parameter : model->parameters()) parameter.zero_();
    EXPECT_TRUE(bit_equal(copy->forward(x), expected)) << "they share no weights";
  }
}

TEST(WindowEncoder, ClonesAndMoves) {
  const torch::NoGradGuard no_grad;
  auto model = drawn(WindowEncoder(two_stages(WindowPositions::Continuous, true)));
  const auto x = torch::randn({2, 5, 6, 8});
  const auto copy = std::dynamic_pointer_cast<WindowEncoderImpl>(model->clone());
  EXPECT_TRUE(bit_equal(copy->forward(x), model->forward(x)));
  copy->to(torch::kDouble);
  EXPECT_TRUE(near(copy->forward(x.to(torch::kDouble)).to(torch::kFloat), model->forward(x)));
}

}  // namespace
}  // namespace posenc::window_encoder_test
