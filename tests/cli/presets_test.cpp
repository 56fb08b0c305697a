#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "posenc/models/front_preset.h"

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

TEST_F(Fronts, AreTheLastPartOfTheList) {
  const std::string fronts = posenc({"presets", "--fronts"}).out, all = posenc({"presets"}).out;
  EXPECT_NE(fronts.find("front gpt2: gpt2, gpt_bigcode, gpt_neo"), std::string::npos) << fronts;
  EXPECT_EQ(fronts.find("rotary"), std::string::npos);
  ASSERT_GT(all.size(), fronts.size());
  EXPECT_EQ(all.substr(all.size() - fronts.size()), fronts);
  EXPECT_EQ(posenc({"presets", "--rotary"}).out.find("front bert"), std::string::npos);
  EXPECT_EQ(posenc({"presets", "--rotary", "--fronts"}).status, 2);
}

}  // namespace
}  // namespace posenc::testing
