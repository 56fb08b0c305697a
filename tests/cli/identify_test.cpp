#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"

namespace posenc::testing {
namespace {

class Identify : public InFolder {
 protected:
  // Writes a checkpoint with two sinusoids, one of them in bfloat16, among other tensors.
  std::string checkpoint() const {
    const auto grid = preset("mae_2d", 64, {{"height", 7}, {"cls_token", 1}});
    return safetensors(
        "model.safetensors",
        dict({{"embed.weight", torch::randn({200, 36})},
              {"embed.pe", sinusoid_table(preset("annotated_transformer", 36), 60).unsqueeze(0)},
              {"norm.weight", torch::ones({36})},
              {"vit.pos_embed", sinusoid_table(grid, 49, torch::kBFloat16).unsqueeze(0)},
              {"ids", torch::arange(40)}}));
  }
};

TEST_F(Identify, ListsEveryTensorAsJson) {
  const auto result = posenc({"identify", "--json", checkpoint()});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto list = nlohmann::json::parse(result.out);
  ASSERT_EQ(list.size(), 5u);
  for (const auto& entry : list) {
    EXPECT_EQ(entry.size(), 7u);
    const std::string name = entry.at("tensor");
    EXPECT_EQ(entry.at("sinusoid"), name == "embed.pe" || name == "vit.pos_embed") << name;
  }
  const auto& names = list[1].at("presets");
  EXPECT_NE(std::find(names.begin(), names.end(), "espnet"), names.end()) << list[1];
  EXPECT_EQ(list[1].at("max_abs"), 0.0);
  EXPECT_EQ(list[1].at("max_ulp"), 0);
  EXPECT_EQ(list[3].at("nearest"), "vit_mae");
  EXPECT_EQ(list[3].at("params").at("height"), 7);
}

TEST_F(Identify, PrintsTheOptionsThatRebuild) {
  const auto result = posenc({"identify", checkpoint()});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("posenc::preset(\"vit_mae\", 64, {{\"height\", 7}})"),
            std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("3 of 5 tensors are not sinusoidal"), std::string::npos) << result.out;
}

TEST_F(Identify, Refuses) {
  EXPECT_EQ(posenc({"identify"}).status, 2);
  expect_refused(posenc({"identify", file("missing")}), "identify", "missing");
}

TEST_F(Identify, NamesFromAFileAreSafe) {
  const auto dotted = safetensors("dotted", dict({{".pe", torch::randn({9, 6})}}));
  EXPECT_EQ(posenc({"identify", dotted}).status, 0);
  const std::string name = "\033[2J\007" + std::string(1000, 'n');
  const auto table = sinusoid_table(preset("notebook_003", 6), 9);
  const auto weights = safetensors("w", dict({{name, table}}));
  for (const auto& result :
       {posenc({"identify", weights}), posenc({"identify", "--json", weights})}) {
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ((result.out + result.err).find_first_of("\033\007"), std::string::npos)
        << result.out << result.err;
  }
}

}  // namespace
}  // namespace posenc::testing
