// Folders of cross-encoders. tests/text/sentences_test.py compares scores of pairs.

#include <gtest/gtest.h>

#include "models/encoder/tiny_folder.h"
#include "posenc/models/sentence_folder.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

using nlohmann::json;

void put_json(const std::string& folder, const std::string& name, const json& value) {
  std::filesystem::create_directories(std::filesystem::path(folder + "/" + name).parent_path());
  write_bytes(folder + "/" + name, value.dump());
}

json listed_stage(const std::string& kind, const std::string& path) {
  return {{"name", kind}, {"path", path}, {"type", "sentence_transformers.base.modules." + kind}};
}

TEST(CrossEncoderFolder, HasItsActivationInOneOfThreePlaces) {
  auto folder = TinyFolder::bert();
  const auto activation = [&] { return read_cross_encoder_folder(folder.write()).activation; };
  EXPECT_FALSE(activation());
  folder.config["sbert_ce_default_activation_function"] = "torch.nn.modules.linear.Identity";
  EXPECT_EQ(activation(), Activation::Identity);
  folder.config["sentence_transformers"] = {{"activation_fn", "torch.nn.modules.activation.Tanh"}};
  EXPECT_EQ(activation(), Activation::Tanh);
  folder.config["sentence_transformers"] = {{"activation_fn", nullptr}};
  EXPECT_FALSE(activation()) << "which is not looked for further on";
  put_json(
      folder.write(), "config_sentence_transformers.json",
      {{"model_type", "CrossEncoder"}, {"activation_fn", "torch.nn.modules.activation.Sigmoid"}});
  EXPECT_EQ(activation(), Activation::Sigmoid);
  put_json(folder.write(), "config_sentence_transformers.json",
           {{"activation_fn", "torch.nn.modules.activation.Sigmoid"}});
  EXPECT_FALSE(activation()) << "of a SentenceTransformer";
}

TEST(CrossEncoderFolder, HasPromptsAndLengthsOfItsStage) {
  auto folder = TinyFolder::bert();
  const std::string path = folder.write();
  put_json(path, "config_sentence_transformers.json",
           {{"model_type", "CrossEncoder"},
            {"prompts", {{"query", "q: "}, {"none", nullptr}}},
            {"default_prompt_name", "query"}});
  put_json(path, "modules.json", json::array({listed_stage("Transformer", "")}));
  put_json(
      path, "sentence_bert_config.json",
      {{"transformer_task", "sequence-classification"},
       {"module_output_name", "scores"},
       {"modality_config", {{"text", {{"method", "forward"}, {"method_output_name", "logits"}}}}},
       {"max_seq_length", 6}});
  const auto read = read_cross_encoder_folder(path);
  EXPECT_EQ(read.model, path);
  EXPECT_EQ(read.prompts, (std::map<std::string, std::string>{{"query", "q: "}, {"none", ""}}));
  EXPECT_EQ(read.default_prompt_name, "query");
  EXPECT_EQ(read.max_seq_length, 6);
  put_json(path, "modules.json",
           {listed_stage("Transformer", ""), listed_stage("LogitScore", "1")});
  EXPECT_ERROR(read_cross_encoder_folder(path), c10::ValueError,
               "must list a Transformer alone, whose head makes the scores. Got "
               "sentence_transformers.base.modules.LogitScore");
}

}  // namespace
}  // namespace posenc::testing
