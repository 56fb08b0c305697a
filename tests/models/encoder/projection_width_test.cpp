// Projections after an encoder whose width in the settings is not that of the weights.

#include <gtest/gtest.h>

#include <fstream>

#include "models/encoder/tiny_folder.h"
#include "posenc/models/dual_encoder.h"
#include "posenc/models/sentence_folder.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

TEST(ProjectionWidth, OfADenseIsThatOfItsWeights) {
  auto encoder = TinyFolder::bert();
  const std::string folder = encoder.write();
  fs::create_directories(folder + "/1_Pooling");
  fs::create_directories(folder + "/2_Dense");
  json modules;
  for (const auto& [kind, path] :
       {std::pair("Transformer", ""), {"Pooling", "1_Pooling"}, {"Dense", "2_Dense"}})
    modules.push_back({{"name", kind},
                       {"path", path},
                       {"type", std::string("sentence_transformers.models.") + kind}});
  write_bytes(folder + "/modules.json", modules.dump());
  write_bytes(folder + "/1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})");
  StateDict dense;
  dense.insert("linear.weight", torch::randn({4, 8}));
  dense.insert("linear.bias", torch::randn({4}));
  save_safetensors(folder + "/2_Dense/model.safetensors", dense);
  const auto with_width = [&](int64_t width) {
    const json config = {{"in_features", 8}, {"out_features", width}};
    write_bytes(folder + "/2_Dense/config.json", config.dump());
    return load_sentence_stages(folder);
  };
  EXPECT_EQ(with_width(4)->forward(torch::randn({2, 3, 8})).sizes(), (torch::IntArrayRef{2, 4}));
  for (const int64_t wrong : {3, 5, 8}) {
    const std::string expected = "(" + std::to_string(wrong) + ", 8)";
    EXPECT_ERROR(with_width(wrong), WeightsError, "linear.weight");
    EXPECT_ERROR(with_width(wrong), WeightsError, expected);
  }
}

TEST(ProjectionWidth, OfADualEncoderIsThatOfItsWeights) {
  const TempDir dir;
  const std::string folder = dir / "clip";
  fs::copy(POSENC_LIVE_DIR "/encoder/clip", folder, fs::copy_options::recursive);
  std::ifstream stream(folder + "/config.json");
  json config = json::parse(stream);
  const auto right = config.at("projection_dim").get<int64_t>();
  for (const int64_t wrong : {right - 1, right + 1}) {
    config["projection_dim"] = wrong;
    write_bytes(folder + "/config.json", config.dump());
    const std::string expected = "[" + std::to_string(wrong) + ", 16]";
    EXPECT_ERROR(load_dual_encoder(folder), WeightsError, "projection.weight");
    EXPECT_ERROR(load_dual_encoder(folder), WeightsError, expected);
  }
}

}  // namespace
}  // namespace posenc::testing
