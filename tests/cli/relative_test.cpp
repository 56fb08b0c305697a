#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "posenc/catalogue/relative_preset.h"
#include "posenc/positions/relative/alibi.h"
#include "posenc/positions/relative/bias.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

class Relative : public InFolder {
 protected:
  Result relative(const nlohmann::json& settings, std::vector<std::string> more = {}) const {
    std::vector<std::string> command = {
        "relative", "--config", text_file("settings.json", settings.dump()), "--out", file("out")};
    command.insert(command.end(), more.begin(), more.end());
    return posenc(command);
  }
  nlohmann::json t5() const {
    return {{"preset", "t5"},   {"dtype", "float32"}, {"bidirectional", false},
            {"num_buckets", 8}, {"max_distance", 20}, {"offset", 3},
            {"heads", 2},       {"queries", 4},       {"keys", 7}};
  }
  std::string given(const torch::Tensor& table) const {
    return safetensors("in.safetensors", dict({{"w.relative_attention_bias.weight", table}}));
  }
};

TEST_F(Relative, ComputesAPresetFromItsSettingsAndTensors) {
  const auto table = torch::randn({8, 2});
  const auto result = relative(t5(), {"--in", given(table)});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out + result.err, "");
  const auto out = load_safetensors(file("out")).tensors;
  EXPECT_TRUE(bit_equal(out["bias"],
                        relative_position_bias(table, 4, 7, relative::Buckets{8, 20, false}, 3)));
}

TEST_F(Relative, NeedsNoTensorsWhereThePresetTakesNone) {
  const auto result = relative(
      {{"preset", "mpt"}, {"dtype", "float32"}, {"bias_max", 8}, {"heads", 3}, {"keys", 5}});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto bias = load_safetensors(file("out")).tensors["bias"];
  ASSERT_EQ(bias.sizes(), at::IntArrayRef({1, 3, 1, 5}));
  EXPECT_TRUE(bit_equal(bias.select(3, 3).flatten(), -alibi_slopes(3, relative::Slopes::Mpt)));
}

TEST_F(Relative, RefusesWhatIsMissingUnknownOrWrong) {
  const auto in = given(torch::randn({8, 2}));
  const auto refused = [&](const nlohmann::json& settings, const std::string& text) {
    const auto result = relative(settings, {"--in", in});
    EXPECT_EQ(result.status, 1);
    EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("Exception raised"), std::string::npos) << result.err;
  };
  auto settings = t5();
  settings.erase("offset");
  refused(settings, "the settings must have `offset`");
  settings["offset"] = nullptr;
  refused(settings, "`offset` must be true or false, a number, a word");
  settings = t5();
  settings["preset"] = "t6";
  refused(settings, "no preset `t6`; the nearest: t5");
  settings["preset"] = 5;
  refused(settings, "`preset` must be a name");
  settings.erase("preset");
  refused(settings, "must have `preset`");
  settings = t5();
  settings["heads"] = 3;
  refused(settings, "`w.relative_attention_bias.weight` must be (8, 3). Got [8, 2]");
  refused(nlohmann::json::array(), "must be an object");
}

TEST_F(Relative, PresetsAreListed) {
  const auto list = nlohmann::json::parse(posenc({"presets", "--relative", "--json"}).out);
  ASSERT_EQ(list.size(), relative_presets().size());
  EXPECT_EQ(list[0]["name"], "t5");
  EXPECT_EQ(list[0]["outputs"], nlohmann::json({"bias"}));
  const std::string table = posenc({"presets", "--relative"}).out, all = posenc({"presets"}).out;
  EXPECT_NE(table.find("swin_scores"), std::string::npos);
  EXPECT_NE(all.find(table), std::string::npos);
  EXPECT_EQ(posenc({"presets", "--relative", "--rotary"}).status, 2);
}

}  // namespace
}  // namespace posenc::testing
