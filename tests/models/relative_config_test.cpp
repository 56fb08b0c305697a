#include "posenc/models/relative_config.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <set>

#include "posenc/catalogue/relative_preset.h"
#include "posenc/positions/nn/relative_position_bias.h"
#include "posenc/weights/load.h"
#include "support/compare.h"

namespace posenc {
namespace {

int64_t integer_of(const RelativeOptions& options, const char* name) {
  return std::get<int64_t>(options.settings.at(name));
}

TEST(RelativeConfig, HasASettingOfTheFileOrItsClass) {
  const auto t5 = relative_options_from_hf(
      R"({"model_type": "t5", "relative_attention_num_buckets": 16, "num_attention_heads": 3})");
  EXPECT_EQ(t5.preset, "t5");
  EXPECT_EQ(integer_of(t5, "num_buckets"), 16);
  EXPECT_EQ(integer_of(t5, "max_distance"), 128);
  EXPECT_EQ(integer_of(t5, "heads"), 3) << "by another name of num_heads";
  EXPECT_TRUE(std::get<bool>(t5.settings.at("bidirectional")));
  EXPECT_FALSE(std::get<bool>(
      relative_options_from_hf(R"({"model_type": "t5"})", "decoder").settings.at("bidirectional")));
  const auto deberta = relative_options_from_hf(
      R"({"model_type": "deberta-v2", "relative_attention": true, "pos_att_type": "p2c|c2p",
          "position_buckets": 256, "share_att_key": true, "max_position_embeddings": 64})");
  EXPECT_EQ(integer_of(deberta, "max_relative"), 64) << "where max_relative_positions is -1";
  EXPECT_EQ(std::get<std::vector<std::string>>(deberta.settings.at("terms")),
            (std::vector<std::string>{"p2c", "c2p"}));
}

TEST(RelativeConfig, IsOfAKnownPreset) {
  for (const RelativeModel& model : relative_models())
    EXPECT_EQ(find_relative_preset(model.preset).name, model.preset) << model.model_type;
}

// A file may have nothing but its model type: what is not refused has the class's own numbers.
TEST(RelativeConfig, TakesTheDefaultsOfTheClass) {
  const std::set<std::string> without = {"beit", "data2vec-vision", "deberta", "deberta-v2",
                                         "falcon"};
  for (const RelativeModel& model : relative_models()) {
    const std::string config = R"({"model_type": ")" + model.model_type + "\"}";
    if (without.count(model.model_type) == 0) {
      EXPECT_NO_THROW(relative_options_from_hf(config)) << config;
    }
  }
  const auto sew_d = relative_options_from_hf(R"({"model_type": "sew-d"})");
  EXPECT_EQ(integer_of(sew_d, "buckets"), 256);
  EXPECT_TRUE(std::get<bool>(sew_d.settings.at("share_key")));
  EXPECT_EQ(std::get<std::vector<std::string>>(sew_d.settings.at("terms")),
            (std::vector<std::string>{"p2c", "c2p"}));
  EXPECT_EQ(integer_of(relative_options_from_hf(R"({"model_type": "wavlm"})"), "max_distance"),
            800);
}

// transformers 5.23 renamed Swin's table.
TEST(RelativeConfig, FindsTheTableByBothNames) {
  const auto swin = relative_options_from_hf(R"({"model_type": "swin", "window_size": 2})");
  const auto table = torch::randn({9, 3});
  for (const char* name :
       {"encoder.layers.0.blocks.0.attention.relative_position_bias.relative_position_bias_table",
        "encoder.layers.0.blocks.0.attention.self.relative_position_bias_table"}) {
    StateDict file;
    file.insert(name, table);
    RelativePositionBias bias(relative::Clamp{4, 4}, 3);
    load_state_dict(*bias, file, LoadOptions().key_map(swin.key_map));
    EXPECT_TRUE(testing::bit_equal(bias->weight, table)) << name;
  }
}

TEST(RelativeConfig, Errors) {
  const auto wrong = [](const std::string& config, const std::string& text) {
    EXPECT_ERROR(relative_options_from_hf(config), c10::ValueError, text);
  };
  wrong(R"({"model_type": "t6"})", "`model_type` must be one whose relative positions are known");
  wrong(R"({"model_type": "t5", "num_heads": "many"})", "num_heads");
  wrong(R"({"model_type": "t5", "relative_attention_num_buckets": 0})",
        "relative_attention_num_buckets");
  wrong(R"({"model_type": "falcon", "alibi": false})", "alibi must be true");
  wrong(R"({"model_type": "swin", "window_size": [7, 7, 7]})", "window_size");
  wrong(R"({"model_type": "deberta", "relative_attention": false})", "relative_attention");
  wrong(R"({"model_type": "wav2vec2-bert", "position_embeddings_type": "rotary"})",
        "position_embeddings_type");
  EXPECT_ERROR(relative_options_from_hf(R"({"model_type": "t5"})", "both"), c10::ValueError,
               "stack must be encoder or decoder. Got both");
}

}  // namespace
}  // namespace posenc
