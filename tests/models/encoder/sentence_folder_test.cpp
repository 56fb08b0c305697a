// Folders that sentence-transformers wrote: an encoder, and stages that make vectors of its output.

#include <gtest/gtest.h>

#include "models/encoder/tiny_folder.h"
#include "posenc/models/encoder.h"
#include "posenc/models/inspect_folder.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

using nlohmann::json;

json stage(int index, const std::string& kind, const std::string& path) {
  return {{"idx", index},
          {"name", std::to_string(index)},
          {"path", path},
          {"type", "sentence_transformers.models." + kind}};
}

void write_json(const std::string& path, const json& value) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  write_bytes(path, value.dump());
}

// The stages of a model whose encoder is in the folder `encoder`.
void add_stages(const std::string& folder, const std::string& encoder) {
  write_json(folder + "/modules.json",
             {stage(0, "Transformer", encoder), stage(1, "Pooling", "1_Pooling"),
              stage(2, "Dense", "2_Dense"), stage(3, "Normalize", "3_Normalize")});
  write_json(folder + "/1_Pooling/config.json", {{"word_embedding_dimension", 8},
                                                 {"pooling_mode_cls_token", false},
                                                 {"pooling_mode_mean_tokens", true}});
}

const std::vector<std::string> kStages = {"Pooling (mean_tokens)", "Dense (2_Dense)", "Normalize"};

TEST(SentenceFolder, IsItsEncoderWithoutAPooledOutput) {
  const auto folder = TinyFolder::bert();
  const auto path = folder.write();
  const auto ids = torch::tensor({{2, 5, 7, 3}});
  const auto plain = load_encoder(path)->forward(ids);
  EXPECT_TRUE(plain.pooled.defined());
  EXPECT_TRUE(inspect_folder(path).sentence_stages.empty());
  add_stages(path, "");
  auto model = load_encoder(path);
  const auto out = model->forward(ids);
  EXPECT_TRUE(bit_equal(out.last_hidden_state, plain.last_hidden_state));
  EXPECT_FALSE(out.pooled.defined()) << "BERT's pooler is not the model's";
  EXPECT_EQ(model->options.pooling(), encoder::Pooling::None);
  EXPECT_EQ(inspect_folder(path).sentence_stages, kStages);
}

TEST(SentenceFolder, OfTheOldLayoutSaysWhereTheEncoderIs) {
  const TempDir whole;
  const auto encoder = whole / "0_Transformer";
  const auto folder = TinyFolder::bert();
  std::filesystem::copy(folder.write(), encoder, std::filesystem::copy_options::recursive);
  add_stages(whole.path().string(), "0_Transformer");
  EXPECT_CONTAINS(refusal([&] { load_encoder(whole.path().string()); }),
                  "NotFound: [load_encoder] " + whole.path().string() +
                      ": has no config.json: it is a sentence-transformers model, whose first "
                      "stage, Transformer, is in " +
                      std::string(encoder) + "; give that folder");
  for (const std::string& path : {std::string(encoder), std::string(encoder) + "/"}) {
    EXPECT_FALSE(load_encoder(path)->forward(torch::tensor({{2, 5}})).pooled.defined());
    EXPECT_EQ(inspect_folder(path).sentence_stages, kStages);
  }
}

TEST(SentenceFolder, DescribesStagesAsFarAsTheyAreKnown) {
  const auto folder = TinyFolder::bert();
  const auto path = folder.write();
  write_json(path + "/modules.json", {stage(0, "Transformer", ""), stage(1, "Pooling", "1_Pooling"),
                                      stage(2, "LSTM", "2")});
  EXPECT_EQ(inspect_folder(path).sentence_stages,
            (std::vector<std::string>{"Pooling (1_Pooling)", "LSTM (2)"}));
  write_json(path + "/1_Pooling/config.json",
             {{"pooling_mode_cls_token", true}, {"pooling_mode_max_tokens", true}});
  EXPECT_EQ(inspect_folder(path).sentence_stages.front(), "Pooling (cls_token and max_tokens)");
}

TEST(SentenceFolder, RefusesAListThatIsNone) {
  const auto folder = TinyFolder::bert();
  const auto path = folder.write();
  for (const json& bad : {json::object(), json::array(), json({{{"path", ""}}}), json({1})}) {
    write_json(path + "/modules.json", bad);
    EXPECT_CONTAINS(refusal([&] { load_encoder(path); }),
                    "Corrupt: [load_encoder] " + path +
                        "/modules.json: must be a list of the stages of a sentence-transformers "
                        "model");
  }
}

// A folder of models may have a modules.json of something else.
TEST(SentenceFolder, IsNoFolderBesideAnotherModulesJson) {
  const TempDir models;
  const auto folder = TinyFolder::bert();
  const std::string path = models / "bert";
  std::filesystem::copy(folder.write(), path, std::filesystem::copy_options::recursive);
  for (const char* text : {"{}", "[", R"([{"type": "a.B", "path": "other"}])"}) {
    write_bytes(models / "modules.json", text);
    EXPECT_TRUE(load_encoder(path)->forward(torch::tensor({{2, 5}})).pooled.defined()) << text;
  }
}

}  // namespace
}  // namespace posenc::testing
