#include "posenc/relative/preset.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <set>

#include "posenc/relative/bias.h"
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
  wrong("offset", int64_t{-1}, "[t5] `offset` must be at least 0. Got -1");
  wrong("heads", int64_t{2},
        "[t5] `w.relative_attention_bias.weight` must be (32, 2). Got [32, 3]");
  RelativeInputs inputs = t5_inputs();
  inputs.tensors["msak"] = torch::zeros({1});
  EXPECT_ERROR(relative_outputs("t5", inputs), c10::ValueError, "Got `msak`");
  inputs.tensors.clear();
  EXPECT_ERROR(relative_outputs("t5", inputs), c10::ValueError,
               "[t5] the tensors must have `w.relative_attention_bias.weight`");
}

TEST(RelativePreset, SuggestsANameForAnUnknownOne) {
  EXPECT_ERROR(find_relative_preset("swinv3"), c10::ValueError, "swinv2");
  EXPECT_ERROR(relative_outputs("t6", {}), c10::ValueError, "t5");
}

}  // namespace
}  // namespace posenc
