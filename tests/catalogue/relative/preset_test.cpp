#include "posenc/catalogue/relative_preset.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <set>

#include "posenc/positions/relative/bias.h"
#include "posenc/positions/relative/window.h"
#include "support/compare.h"

namespace posenc {
namespace {

using testing::bit_equal;

TEST(RelativePreset, HasItsOwnNameAndSaysWhatItTakes) {
  std::set<std::string> names;
  for (const RelativePreset& preset : relative_presets()) {
    SCOPED_TRACE(preset.name);
    EXPECT_TRUE(names.insert(preset.name).second);
    EXPECT_FALSE(preset.source.empty());
    EXPECT_FALSE(preset.summary.empty());
    EXPECT_FALSE(preset.settings.empty());
    EXPECT_FALSE(preset.outputs.empty());
    EXPECT_EQ(find_relative_preset(preset.name).name, preset.name);
  }
}

// No setting and no tensor has a default.
TEST(RelativePreset, RefusesACallWithoutAnything) {
  for (const RelativePreset& preset : relative_presets())
    EXPECT_ERROR(relative_outputs(preset.name, {}), c10::ValueError, "[" + preset.name + "] the");
}

RelativeInputs t5_inputs() {
  return {{{"dtype", std::string("float32")},
           {"bidirectional", true},
           {"num_buckets", int64_t{32}},
           {"max_distance", int64_t{128}},
           {"offset", int64_t{2}},
           {"heads", int64_t{3}},
           {"queries", int64_t{4}},
           {"keys", int64_t{6}}},
          {{"w.relative_attention_bias.weight", torch::randn({32, 3})}}};
}

TEST(RelativePreset, ComputesFromSettingsAndTensors) {
  const RelativeInputs inputs = t5_inputs();
  const RelativeOutputs outputs = relative_outputs("t5", inputs);
  ASSERT_EQ(outputs.size(), 1);
  const auto& table = inputs.tensors.at("w.relative_attention_bias.weight");
  EXPECT_TRUE(
      bit_equal(outputs.at("bias"), relative_position_bias(table, 4, 6, relative::Buckets{}, 2)));
}

// The bits are those of the class's parameters, which need a gradient, also where none is recorded.
TEST(RelativePreset, HasTheSameBitsWithoutGradients) {
  torch::manual_seed(1);
  for (int i = 0; i < 40; ++i) {
    RelativeInputs inputs{
        {{"dtype", std::string("float32")}, {"reach", int64_t{2}}, {"masked", false}},
        {{"w.emb_rel_k", torch::randn({1, 5, 64})}, {"w.emb_rel_v", torch::randn({1, 5, 64})}}};
    for (const char* name : {"q", "k", "v"}) inputs.tensors[name] = torch::randn({3, 1, 1, 64});
    const RelativeOutputs recording = relative_outputs("vits", inputs);
    const torch::NoGradGuard no_grad;
    const RelativeOutputs outputs = relative_outputs("vits", inputs);
    EXPECT_TRUE(bit_equal(recording.at("scores"), outputs.at("scores")));
    EXPECT_FALSE(recording.at("output").requires_grad());
  }
}

TEST(RelativePreset, NamesWhatIsMissingOrWrong) {
  for (const std::string& name : find_relative_preset("t5").settings) {
    RelativeInputs inputs = t5_inputs();
    inputs.settings.erase(name);
    EXPECT_ERROR(relative_outputs("t5", inputs), c10::ValueError,
                 "[t5] the settings must have `" + name + "`");
  }
  const auto wrong = [](const std::string& name, RelativeSetting value, const std::string& text) {
    RelativeInputs inputs = t5_inputs();
    inputs.settings[name] = std::move(value);
    EXPECT_ERROR(relative_outputs("t5", inputs), c10::ValueError, text);
  };
  wrong("num_buckets", std::string("many"), "[t5] `num_buckets` must be an integer. Got many");
  wrong("max_distance", int64_t{8}, "max_distance must be larger than 8");
  wrong("bidirectional", int64_t{1}, "[t5] `bidirectional` must be true or false. Got 1");
  wrong("offset", int64_t{-1}, "[t5] `offset` must be at least 0, and at most 4294967296. Got -1");
  wrong("heads", int64_t{2},
        "[t5] `w.relative_attention_bias.weight` must be (32, 2). Got [32, 3]");
  RelativeInputs inputs = t5_inputs();
  inputs.tensors["msak"] = torch::zeros({1});
  EXPECT_ERROR(relative_outputs("t5", inputs), c10::ValueError, "Got `msak`");
  inputs.tensors.clear();
  EXPECT_ERROR(relative_outputs("t5", inputs), c10::ValueError,
               "[t5] the tensors must have `w.relative_attention_bias.weight`");
}

// Also where a preset has no other use for it.
TEST(RelativePreset, NeedsADtype) {
  RelativeInputs inputs = t5_inputs();
  inputs.settings.erase("dtype");
  EXPECT_ERROR(relative_outputs("t5", inputs), c10::ValueError,
               "[t5] the settings must have `dtype`");
  inputs.settings["dtype"] = std::string("float64");
  EXPECT_ERROR(relative_outputs("t5", inputs), c10::ValueError,
               "[t5] `dtype` must be float32, bfloat16 or float16. Got float64");
}

RelativeInputs swin_inputs() {
  return {{{"dtype", std::string("float32")}, {"window", int64_t{4}}, {"masked", true}},
          {{"q", torch::randn({4, 3, 16, 8})},
           {"k", torch::randn({4, 3, 16, 8})},
           {"mask", torch::zeros({2, 16, 16})},
           {"w.relative_position_bias_table", torch::randn({49, 3})}}};
}

// timm's class applies the sigmoid where the heads come last, whose bits depend on the place.
TEST(RelativePreset, SquashesInTheOrderOfTimm) {
  torch::manual_seed(1);
  for (int i = 0; i < 20; ++i) {
    const auto first = torch::randn({16, 2}), bias = torch::randn({16}),
               second = torch::randn({3, 16});
    const RelativeInputs inputs{
        {{"dtype", std::string("float32")},
         {"window", std::vector<int64_t>{3, 7}},
         {"hidden", int64_t{16}},
         {"prefix", int64_t{1}},
         {"mode", std::string("swin")},
         {"pretrained_window", int64_t{0}},
         {"heads", int64_t{3}}},
        {{"w.mlp.fc1.weight", first}, {"w.mlp.fc1.bias", bias}, {"w.mlp.fc2.weight", second}}};
    const auto inner = torch::relu(torch::linear(
        relative_log_coordinates({3, 7}, relative::LogCoordinates::TimmSwin), first, bias));
    const auto pairs = torch::linear(inner, second)
                           .view({-1, 3})
                           .index_select(0, relative_window_index({3, 7}).flatten())
                           .view({21, 21, 3});
    const auto expected =
        torch::constant_pad_nd(torch::sigmoid(pairs.permute({2, 0, 1})) * 16, {1, 0, 1, 0});
    EXPECT_TRUE(bit_equal(relative_outputs("timm_mlp", inputs).at("bias"),
                          expected.unsqueeze(0).contiguous()));
  }
}

// Of another window, of other lengths and shapes.
TEST(RelativePreset, NamesWhatDoesNotFitAWindow) {
  ASSERT_EQ(relative_outputs("donut_swin", swin_inputs()).at("scores").size(0), 4);
  const auto wrong = [](const std::string& name, const torch::Tensor& tensor,
                        const std::string& text) {
    RelativeInputs inputs = swin_inputs();
    inputs.tensors[name] = tensor;
    EXPECT_ERROR(relative_outputs("donut_swin", inputs), c10::ValueError, text);
  };
  // Swin's table has two names.
  RelativeInputs renamed = swin_inputs();
  renamed.tensors["w.relative_position_bias.relative_position_bias_table"] =
      renamed.tensors.extract("w.relative_position_bias_table").mapped();
  EXPECT_EQ(relative_outputs("donut_swin", renamed).count("scores"), 1);
  wrong("w.relative_position_bias_table", torch::zeros({169, 3}), "must be (49, 3). Got [169, 3]");
  wrong("q", torch::zeros({4, 3, 15, 8}), "`q` must be (*, *, 16, *). Got [4, 3, 15, 8]");
  wrong("k", torch::zeros({4, 3, 16, 7}), "`k` must be (4, 3, *, 8). Got [4, 3, 16, 7]");
  wrong("mask", torch::zeros({3, 16, 16}), "`q` must have all windows of the mask. Got 4 and 3");
  wrong("mask", torch::zeros({0, 16, 16}), "`q` must have all windows of the mask. Got 4 and 0");
  RelativeInputs inputs = swin_inputs();
  inputs.settings["window"] = std::vector<int64_t>{int64_t{1} << 40, 4};
  EXPECT_ERROR(relative_outputs("donut_swin", inputs), c10::ValueError,
               "[donut_swin] `window` must be at least 1, of at most 16777216 patches");
}

// gcvit's class makes the transposed keys contiguous, whose product has other bits.
TEST(RelativePreset, MultipliesContiguousKeysInGcvit) {
  torch::manual_seed(1);
  for (int i = 0; i < 10; ++i) {
    const auto q = torch::randn({1, 10, 3, 16}).transpose(1, 2), k = torch::randn({1, 3, 10, 16});
    const RelativeInputs inputs{
        {{"dtype", std::string("float32")}, {"window", std::vector<int64_t>{5, 2}}},
        {{"q", q}, {"k", k}, {"w.rel_pos.relative_position_bias_table", torch::zeros({27, 3})}}};
    EXPECT_TRUE(bit_equal(relative_outputs("timm_gcvit", inputs).at("scores"),
                          torch::matmul(q * 0.25, k.transpose(-2, -1).contiguous())));
  }
}

RelativeInputs layout_inputs() {
  return {{{"dtype", std::string("float32")},
           {"num_buckets", int64_t{32}},
           {"max_distance", int64_t{128}},
           {"num_buckets_2d", int64_t{64}},
           {"max_distance_2d", int64_t{256}}},
          {{"q", torch::randn({2, 3, 5, 4})},
           {"k", torch::randn({2, 3, 5, 4})},
           {"positions", torch::randint(0, 9, {2, 5})},
           {"bbox", torch::randint(0, 1001, {2, 5, 4})},
           {"w.rel_pos_bias.weight", torch::randn({3, 32})},
           {"w.rel_pos_x_bias.weight", torch::randn({3, 64})},
           {"w.rel_pos_y_bias.weight", torch::randn({3, 64})}}};
}

// The class takes boxes outside of 0 to 1000 here.
TEST(RelativePreset, NamesPositionsAndBoxesOfOtherShapes) {
  RelativeInputs inputs = layout_inputs();
  inputs.tensors["bbox"] = torch::randint(-5000, 70000, {2, 5, 4});
  EXPECT_EQ(relative_outputs("layoutlmv3", inputs).count("scores"), 1);
  const auto wrong = [](const std::string& name, const torch::Tensor& tensor,
                        const std::string& text) {
    RelativeInputs changed = layout_inputs();
    changed.tensors[name] = tensor;
    EXPECT_ERROR(relative_outputs("layoutlmv3", changed), c10::Error, text);
  };
  wrong("bbox", torch::zeros({2, 6, 4}, torch::kLong), "`bbox` must be (2, 5, 4). Got [2, 6, 4]");
  wrong("bbox", torch::zeros({2, 5, 4}), "[layoutlmv3] `bbox` must be integers. Got Float");
  wrong("positions", torch::zeros({3, 5}, torch::kLong), "`bbox` must be (3, 5, 4)");
  wrong("k", torch::zeros({2, 3, 6, 4}), "the term must fit the scores, [2, 3, 5, 6]");
  wrong("w.rel_pos_bias.weight", torch::zeros({3, 31}), "must be (3, 32). Got [3, 31]");
  wrong("w.rel_pos_bias.weight", torch::zeros({3, 32}, torch::kDouble).slice(0, 0, 2),
        "must be (3, 32)");
  wrong("q", torch::zeros({2, 3, 5, 4}, torch::kDouble), "must have the dtype of the settings");
  inputs = layout_inputs();
  inputs.settings["num_buckets"] = int64_t{1} << 62;
  EXPECT_ERROR(relative_outputs("layoutlmv3", inputs), c10::ValueError,
               "`num_buckets` must be at least 0, and at most 4294967296");
}

TEST(RelativePreset, NamesItselfWherePyTorchFindsTheFault) {
  RelativeInputs inputs = swin_inputs();
  inputs.tensors["w.relative_position_bias_table"] = torch::zeros({49, 3}, torch::kLong);
  inputs.tensors["q"] = torch::zeros({4, 3, 16, 8}, torch::kBFloat16);
  inputs.tensors["k"] = torch::zeros({4, 3, 16, 8}, torch::kBFloat16);
  EXPECT_ERROR(relative_outputs("donut_swin", inputs), c10::TypeError, "[donut_swin] `q`");
  RelativeInputs gates = {
      {{"dtype", std::string("float32")}, {"causal", true}, {"heads", int64_t{2}}},
      {{"hidden", torch::zeros({1, 3, 4}, torch::kDouble)},
       {"w.to_forget_gates.0.weight", torch::zeros({2, 4})},
       {"w.to_forget_gates.0.bias", torch::zeros({2})}}};
  EXPECT_ERROR(relative_outputs("x_transformers_forget", gates), c10::ValueError,
               "[x_transformers_forget] the settings and tensors must fit each other");
}

TEST(RelativePreset, SuggestsANameForAnUnknownOne) {
  EXPECT_ERROR(find_relative_preset("swinv3"), c10::ValueError, "swinv2");
  EXPECT_ERROR(relative_outputs("t6", {}), c10::ValueError, "t5");
}

// The class of DeBERTa v1 would scale by their number.
TEST(RelativePreset, RefusesTermsThatDebertaDoesNotHave) {
  for (const char* name : {"deberta", "deberta_v2"}) {
    for (const auto& terms : {std::vector<std::string>{"c2c"}, {"c2p", "c2p"}, {"p2c", "p2p"}}) {
      const RelativeInputs inputs{
          {{"dtype", std::string("float32")}, {"terms", terms}, {"max_relative", int64_t{8}}},
          {{"q", torch::randn({1, 2, 4, 8})}, {"k", torch::randn({1, 2, 4, 8})}}};
      EXPECT_ERROR(relative_outputs(name, inputs), c10::ValueError,
                   "`terms` must be c2p, p2c, both or none, once each. Got");
    }
  }
}

}  // namespace
}  // namespace posenc
