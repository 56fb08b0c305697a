// Folders of cross-encoders. tests/text/sentences_test.py compares scores of pairs.

#include <gtest/gtest.h>

#include "models/encoder/tiny_folder.h"
#include "posenc/models/cross_encoder_folder.h"
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
}

// A cross-encoder of these stages after a Transformer with that task.
std::string listed_folder(const TinyFolder& folder, const std::string& task,
                          const std::vector<json>& stages) {
  const std::string path = folder.write();
  json all = {listed_stage("Transformer", "")};
  for (const json& stage : stages) all.push_back(stage);
  put_json(path, "config_sentence_transformers.json", {{"model_type", "CrossEncoder"}});
  put_json(path, "modules.json", all);
  put_json(path, "sentence_bert_config.json", {{"transformer_task", task}});
  return path;
}

TEST(CrossEncoderFolder, HasTokensOfScores) {
  const auto folder = TinyFolder::bert();
  const auto path =
      listed_folder(folder, "text-generation", {listed_stage("LogitScore", "1_LogitScore")});
  put_json(path, "1_LogitScore/config.json", {{"true_token_id", 4}, {"false_token_id", nullptr}});
  const auto read = read_cross_encoder_folder(path);
  EXPECT_TRUE(read.is_causal);
  EXPECT_FALSE(read.has_head());
  EXPECT_EQ(read.logit_score->true_token_id, 4);
  EXPECT_FALSE(read.logit_score->false_token_id);
  put_json(path, "1_LogitScore/config.json", {{"true_token_id", -4}});
  EXPECT_ERROR(read_cross_encoder_folder(path), c10::ValueError, "true_token_id must be");
  put_json(path, "1_LogitScore/config.json", {{"true_token_id", 4}, {"module_input_name", "x"}});
  EXPECT_ERROR(read_cross_encoder_folder(path), c10::ValueError,
               "module_input_name must be causal_logits");
  put_json(path, "1_LogitScore/config.json", {{"true_token_id", 4}});
  put_json(path, "sentence_bert_config.json", {{"transformer_task", "fill-mask"}});
  EXPECT_ERROR(read_cross_encoder_folder(path), c10::ValueError,
               "transformer_task must be text-generation in a model of this class");
}

TEST(CrossEncoderFolder, HasStagesThatMakeScores) {
  const auto folder = TinyFolder::bert();
  const auto path =
      listed_folder(folder, "feature-extraction",
                    {listed_stage("Pooling", "1_Pooling"), listed_stage("Dense", "2_Dense")});
  put_json(path, "1_Pooling/config.json", {{"pooling_mode", "cls"}});
  json dense = {{"in_features", 8}, {"out_features", 1}, {"module_output_name", "scores"}};
  put_json(path, "2_Dense/config.json", dense);
  const auto read = read_cross_encoder_folder(path);
  EXPECT_EQ(read.stages.size(), 2U);
  EXPECT_FALSE(read.has_head());
  dense["module_output_name"] = "sentence_embedding";
  put_json(path, "2_Dense/config.json", dense);
  EXPECT_ERROR(read_cross_encoder_folder(path), c10::ValueError,
               "stages of which the last is a Dense whose module_output_name is scores. Got "
               "sentence_transformers.base.modules.Dense");
}

TEST(CrossEncoderFolder, HasTheTemplateOfItsMessages) {
  const auto folder = TinyFolder::bert();
  const auto path = listed_folder(folder, "sequence-classification", {});
  const auto with_format = [&](const json& modality) {
    put_json(path, "sentence_bert_config.json",
             {{"transformer_task", "sequence-classification"}, {"modality_config", modality}});
    return read_cross_encoder_folder(path).chat_template;
  };
  const json method = {{"method", "forward"}, {"method_output_name", "logits"}};
  json message = method;
  EXPECT_ERROR(with_format({{"message", message}}), c10::ValueError,
               "must have a chat template, into which its modality_config puts texts");
  put_json(path, "tokenizer_config.json", {{"chat_template", "{{ messages[0].content[0].text }}"}});
  EXPECT_FALSE(with_format({{"text", method}}));
  EXPECT_TRUE(with_format({{"text", method}, {"message", message}})->is_structured);
  message["format"] = "flat";
  EXPECT_FALSE(with_format({{"message", message}})->is_structured);
  message["format"] = "other";
  EXPECT_ERROR(with_format({{"message", message}}), c10::ValueError,
               "format must be auto, flat or structured");
  EXPECT_ERROR(with_format({{"image", method}}), c10::ValueError, "text must be there");
  write_bytes(path + "/chat_template.jinja", "{{ messages[0].content }}");
  message["format"] = "auto";
  EXPECT_EQ(with_format({{"message", message}})->source, "{{ messages[0].content }}");
  EXPECT_FALSE(with_format({{"message", message}})->is_structured);
}

}  // namespace
}  // namespace posenc::testing
