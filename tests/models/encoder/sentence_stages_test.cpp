// Stages after the encoder. tests/differential/sentences.py compares vectors with
// sentence-transformers'.

#include <gtest/gtest.h>

#include "models/encoder/tiny_folder.h"
#include "posenc/models/sentence_folder.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

using nlohmann::json;

// A BERT of width 8 with stages.
class StagesFolder {
 public:
  json modules = {module("Transformer", "")};

  static json module(const std::string& kind, const std::string& path) {
    return {
        {"name", kind + path}, {"path", path}, {"type", "sentence_transformers.models." + kind}};
  }
  void add(const std::string& kind, const std::string& path, const json& config = nullptr) {
    modules.push_back(module(kind, path));
    if (config.is_null()) return;
    std::filesystem::create_directories(path_ + "/" + path);
    write_bytes(path_ + "/" + path + "/config.json", config.dump());
  }
  void put(const std::string& name, const json& value) {
    write_bytes(path_ + "/" + name, value.dump());
  }
  const std::string& write() {
    put("modules.json", modules);
    return path_;
  }

 private:
  TinyFolder folder_ = TinyFolder::bert();
  std::string path_ = folder_.write();
};

const json kMean = {{"pooling_mode_mean_tokens", true}};

TEST(SentenceStages, FlagsAreInAFixedOrderAndListsInTheirs) {
  const auto hidden = torch::randn({1, 3, 8});
  const auto first = hidden.select(1, 0), mean = hidden.mean(1);
  StagesFolder flags;
  flags.add("Pooling", "1", {{"pooling_mode_mean_tokens", true}, {"pooling_mode_cls_token", true}});
  EXPECT_TRUE(bit_equal(load_sentence_stages(flags.write())->forward(hidden),
                        torch::cat({first, mean}, -1)));
  StagesFolder list;
  list.add("Pooling", "1", {{"pooling_mode", {"mean", "cls"}}});
  EXPECT_TRUE(bit_equal(load_sentence_stages(list.write())->forward(hidden),
                        torch::cat({mean, first}, -1)));
}

TEST(SentenceStages, NoModulesFileMeansTheMeanOrTheLastToken) {
  auto folder = TinyFolder::bert();
  const auto hidden = torch::randn({1, 3, 8});
  EXPECT_TRUE(bit_equal(load_sentence_stages(folder.write())->forward(hidden), hidden.mean(1)));
  folder.config["architectures"] = {"BertForCausalLM"};
  EXPECT_TRUE(
      bit_equal(load_sentence_stages(folder.write())->forward(hidden), hidden.select(1, 2)));
}

TEST(SentenceStages, SequencesWithoutTokens) {
  const auto hidden = torch::randn({1, 2, 8}), none = torch::zeros({1, 2}, torch::kLong);
  using sentence::PoolingMode;
  const auto pooled = [&](PoolingMode mode) {
    SentenceStages stages(SentenceStagesOptions(8).stages({sentence::Pooling{{mode}}}));
    return stages->forward(hidden, none);
  };
  for (const auto mode : {PoolingMode::Mean, PoolingMode::MeanSqrtLength, PoolingMode::WeightedMean,
                          PoolingMode::LastToken}) {
    EXPECT_TRUE(bit_equal(pooled(mode), torch::zeros({1, 8})));
  }
  EXPECT_TRUE(bit_equal(pooled(PoolingMode::CLS), hidden.select(1, 0)));
  EXPECT_TRUE(pooled(PoolingMode::Max).isneginf().all().item<bool>());
}

TEST(SentenceStages, ACloneHasItsOwnWeights) {
  SentenceStages stages(
      SentenceStagesOptions(8).stages({sentence::Pooling{}, sentence::Dense{8, 3}}));
  const auto copy = std::dynamic_pointer_cast<SentenceStagesImpl>(stages->clone());
  const auto hidden = torch::randn({2, 3, 8});
  EXPECT_TRUE(bit_equal(copy->forward(hidden), stages->forward(hidden)));
  EXPECT_NE(copy->named_parameters()["2.linear.weight"].data_ptr(),
            stages->named_parameters()["2.linear.weight"].data_ptr());
}

TEST(SentenceStages, RefusesWhatItLacksByName) {
  StagesFolder lstm;
  lstm.add("LSTM", "1", json::object());
  EXPECT_ERROR(load_sentence_stages(lstm.write()), c10::ValueError,
               "Got sentence_transformers.models.LSTM");
  StagesFolder own;
  own.modules.push_back({{"name", "1"}, {"path", ""}, {"type", "custom_st.Transformer"}});
  EXPECT_ERROR(load_sentence_stages(own.write()), c10::ValueError,
               "code in the folder is not run. Got custom_st.Transformer");
  StagesFolder outside;
  outside.add("Pooling", "../1_Pooling");
  EXPECT_ERROR(load_sentence_stages(outside.write()), c10::ValueError,
               "path must be a folder inside the model's. Got ../1_Pooling");
  StagesFolder twice;
  twice.add("Normalize", "1");
  twice.add("Normalize", "1");
  EXPECT_ERROR(load_sentence_stages(twice.write()), c10::ValueError,
               "name must differ from those of the other stages. Got Normalize1");
  StagesFolder mode;
  mode.add("Pooling", "1", {{"pooling_mode", "median"}});
  EXPECT_ERROR(load_sentence_stages(mode.write()), c10::ValueError,
               "pooling_mode must be cls, max, mean");
  StagesFolder activation;
  activation.add("Pooling", "1", kMean);
  activation.add("Dense", "2",
                 {{"in_features", 8}, {"out_features", 8}, {"activation_function", "mine.Act"}});
  EXPECT_ERROR(load_sentence_stages(activation.write()), c10::ValueError,
               "activation_function must be an activation of torch.nn");
}

TEST(SentenceStages, RefusesWidthsThatDoNotFit) {
  StagesFolder folder;
  folder.add("Pooling", "1", kMean);
  folder.add("Dense", "2", {{"in_features", 16}, {"out_features", 8}});
  EXPECT_ERROR(load_sentence_stages(folder.write()), c10::ValueError,
               "stage 2, Dense: in_features must be the width of what it gets, 8. Got 16");
  StagesFolder first;
  first.add("Normalize", "1");
  EXPECT_ERROR(load_sentence_stages(first.write()), c10::ValueError,
               "must follow one that makes its input, sentence_embedding");
}

TEST(SentenceStages, RefusesSettingsThatChangeTheEncoder) {
  const std::pair<json, const char*> bad[] = {
      {{{"transformer_task", "fill-mask"}}, "transformer_task must be feature-extraction"},
      {{{"query_length", 32}}, "query_length must be null"},
      {{{"model_args", {{"trust_remote_code", true}}}}, "such as trust_remote_code"},
      {{{"modality_config", {{"text", {{"method", "get_text_features"}}}}}}, "must be forward"}};
  for (const auto& [settings, rule] : bad) {
    StagesFolder folder;
    folder.add("Pooling", "1", kMean);
    folder.put("sentence_bert_config.json", settings);
    EXPECT_ERROR(load_sentence_stages(folder.write()), c10::ValueError, rule);
  }
}

TEST(SentenceFolderSettings, AreReadWithTheirRules) {
  StagesFolder folder;
  folder.add("Pooling", "1", kMean);
  folder.put("sentence_bert_config.json", {{"max_seq_length", 5}, {"do_lower_case", true}});
  folder.put(
      "config_sentence_transformers.json",
      {{"prompts", {{"query", "q: "}}}, {"default_prompt_name", "query"}, {"truncate_dim", 4}});
  const auto read = read_sentence_folder(folder.write());
  EXPECT_EQ(read.max_seq_length, 5);
  EXPECT_EQ(read.max_positions, 9);
  EXPECT_EQ(read.prompts.at("query"), "q: ");
  EXPECT_EQ(read.default_prompt_name, "query");
  EXPECT_EQ(read.truncate_dim, 4);
  EXPECT_TRUE(read.do_lower_case);
  folder.put("sentence_bert_config.json", {{"max_seq_length", 500}});
  EXPECT_EQ(read_sentence_folder(folder.write()).max_seq_length, 9) << "the table of positions";
  folder.put("config_sentence_transformers.json", {{"default_prompt_name", "passage"}});
  EXPECT_ERROR(load_sentence_stages(folder.write()), c10::ValueError,
               "default_prompt_name must be the name of one of the prompts");
  folder.put("config_sentence_transformers.json", {{"model_type", "SparseEncoder"}});
  EXPECT_ERROR(load_sentence_stages(folder.write()), c10::ValueError,
               "model_type must be SentenceTransformer");
}

TEST(CrossEncoder, ActivationIsFoundInThreePlaces) {
  auto folder = TinyFolder::bert();
  EXPECT_FALSE(cross_encoder_activation(folder.write()));
  folder.config["sbert_ce_default_activation_function"] = "torch.nn.modules.linear.Identity";
  EXPECT_EQ(cross_encoder_activation(folder.write()), Elementwise::Identity);
  folder.config["sentence_transformers"] = {{"activation_fn", "torch.nn.modules.activation.Tanh"}};
  EXPECT_EQ(cross_encoder_activation(folder.write()), Elementwise::Tanh);
  write_bytes(folder / "config_sentence_transformers.json",
              R"({"activation_fn": "torch.nn.modules.activation.Sigmoid"})");
  EXPECT_EQ(cross_encoder_activation(folder.write()), Elementwise::Sigmoid);
}

}  // namespace
}  // namespace posenc::testing
