#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program.h"
#include "posenc/models/encoder_embeddings_preset.h"
#include "posenc/models/vision_embeddings_preset.h"

namespace posenc::testing {
namespace {

class Embeddings : public InFolder {};

TEST_F(Embeddings, AreListedWithTheirModelTypes) {
  const auto list = nlohmann::json::parse(posenc({"presets", "--embeddings", "--json"}).out);
  ASSERT_EQ(list.size(), encoder_embeddings_presets().size());
  EXPECT_EQ(list[0]["name"], "bert");
  EXPECT_EQ(list[0]["formula"], "drop(LN((tok + typ) + pos))");
  std::size_t types = 0;
  for (const auto& entry : list) types += entry["model_types"].size();
  EXPECT_EQ(types, encoder_embeddings_models().size());
}

TEST_F(Embeddings, OfVisionAreListedWithTheirRules) {
  const auto list = nlohmann::json::parse(posenc({"presets", "--vision", "--json"}).out);
  ASSERT_EQ(list.size(), vision_embeddings_presets().size());
  EXPECT_EQ(list[0]["name"], "vit");
  EXPECT_EQ(list[0]["formula"], "dropout([class, patches] + positions)");
  EXPECT_EQ(list[0]["resize"], "bicubic");
  std::size_t types = 0;
  for (const auto& entry : list) types += entry["model_types"].size();
  EXPECT_EQ(types, vision_embeddings_models().size());
}

TEST_F(Embeddings, AreTheLastPartsOfTheList) {
  const std::string embeddings = posenc({"presets", "--embeddings"}).out,
                    all = posenc({"presets"}).out, vision = posenc({"presets", "--vision"}).out,
                    encoders = posenc({"presets", "--encoders"}).out,
                    decoders = posenc({"presets", "--decoders"}).out,
                    end = embeddings + "\n" + vision + "\n" + encoders + "\n" + decoders;
  EXPECT_NE(encoders.find("eurobert"), std::string::npos) << encoders;
  EXPECT_NE(embeddings.find("embeddings gpt2: flaubert, gpt2, gpt_bigcode, gpt_neo"),
            std::string::npos)
      << embeddings;
  EXPECT_NE(vision.find("vision embeddings vit: flava_image_model, vit, vit_msn"),
            std::string::npos)
      << vision;
  EXPECT_EQ(embeddings.find("rotary"), std::string::npos);
  ASSERT_GT(all.size(), end.size());
  EXPECT_EQ(all.substr(all.size() - end.size()), end);
  EXPECT_EQ(posenc({"presets", "--rotary"}).out.find("embeddings bert"), std::string::npos);
  EXPECT_EQ(posenc({"presets", "--rotary", "--embeddings"}).status, 2);
  EXPECT_EQ(posenc({"presets", "--vision", "--embeddings"}).status, 2);
  EXPECT_EQ(posenc({"presets", "--vision", "--encoders"}).status, 2);
  const auto listed = nlohmann::json::parse(posenc({"presets", "--encoders", "--json"}).out);
  const auto bert = std::find_if(listed.begin(), listed.end(),
                                 [](const auto& one) { return one["model_type"] == "bert"; });
  ASSERT_NE(bert, listed.end());
  EXPECT_EQ((*bert)["heads"], nlohmann::json({"sequence", "token", "question", "masked"}));
}

// A script may take the first word of each line that is neither empty nor begins with `#`.
TEST_F(Embeddings, HeadingsAreNoPresets) {
  const char* const tables[] = {"",         "--rotary",  "--relative", "--embeddings",
                                "--vision", "--encoders"};
  for (const std::string table : tables) {
    SCOPED_TRACE(table);
    const auto result = table.empty() ? posenc({"presets"}) : posenc({"presets", table});
    EXPECT_EQ(result.status, 0);
    std::istringstream lines(result.out);
    int headings = 0;
    for (std::string line; std::getline(lines, line);) {
      headings += line.rfind("# ", 0) == 0 ? 1 : 0;
      EXPECT_TRUE(line.empty() || line[0] == '#' || line.rfind("  ", 0) == 0) << line;
    }
    EXPECT_GT(headings, 0);
  }
}

}  // namespace
}  // namespace posenc::testing
