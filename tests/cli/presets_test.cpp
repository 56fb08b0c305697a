#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "posenc/models/front_preset.h"
#include "posenc/models/vision_front_preset.h"

namespace posenc::testing {
namespace {

class Fronts : public InFolder {};

TEST_F(Fronts, AreListedWithTheirModelTypes) {
  const auto list = nlohmann::json::parse(posenc({"presets", "--fronts", "--json"}).out);
  ASSERT_EQ(list.size(), front_presets().size());
  EXPECT_EQ(list[0]["name"], "bert");
  EXPECT_EQ(list[0]["formula"], "drop(LN((tok + typ) + pos))");
  std::size_t types = 0;
  for (const auto& entry : list) types += entry["model_types"].size();
  EXPECT_EQ(types, front_models().size());
}

TEST_F(Fronts, OfVisionAreListedWithTheirRules) {
  const auto list = nlohmann::json::parse(posenc({"presets", "--vision", "--json"}).out);
  ASSERT_EQ(list.size(), vision_front_presets().size());
  EXPECT_EQ(list[0]["name"], "vit");
  EXPECT_EQ(list[0]["formula"], "dropout([class, patches] + positions)");
  EXPECT_EQ(list[0]["resize"], "bicubic");
  std::size_t types = 0;
  for (const auto& entry : list) types += entry["model_types"].size();
  EXPECT_EQ(types, vision_front_models().size());
}

TEST_F(Fronts, AreTheLastPartsOfTheList) {
  const std::string fronts = posenc({"presets", "--fronts"}).out, all = posenc({"presets"}).out,
                    vision = posenc({"presets", "--vision"}).out, end = fronts + "\n" + vision;
  EXPECT_NE(fronts.find("front gpt2: gpt2, gpt_bigcode, gpt_neo"), std::string::npos) << fronts;
  EXPECT_NE(vision.find("vision front vit: flava_image_model, vit, vit_msn"), std::string::npos)
      << vision;
  EXPECT_EQ(fronts.find("rotary"), std::string::npos);
  ASSERT_GT(all.size(), end.size());
  EXPECT_EQ(all.substr(all.size() - end.size()), end);
  EXPECT_EQ(posenc({"presets", "--rotary"}).out.find("front bert"), std::string::npos);
  EXPECT_EQ(posenc({"presets", "--rotary", "--fronts"}).status, 2);
  EXPECT_EQ(posenc({"presets", "--vision", "--fronts"}).status, 2);
}

}  // namespace
}  // namespace posenc::testing
