// Stages after the encoder. tests/differential/sentences.py compares vectors with
// sentence-transformers'.

#include <gtest/gtest.h>

#include "models/encoder/stages_folder.h"
#include "posenc/models/sentence_folder.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

using nlohmann::json;

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

// Rows of `hidden` that are not masked, as if each sequence were alone.
torch::Tensor alone(SentenceStages& stages, const torch::Tensor& hidden, const torch::Tensor& mask,
                    int64_t prompt, const torch::Tensor& ids) {
  std::vector<torch::Tensor> vectors;
  for (int64_t i = 0; i < hidden.size(0); ++i) {
    const auto indices = mask[i].nonzero().squeeze(1);
    vectors.push_back(stages->forward(hidden[i].index_select(0, indices).unsqueeze(0), {}, prompt,
                                      ids[i].index_select(0, indices).unsqueeze(0)));
  }
  return torch::cat(vectors);
}

TEST(SentenceStages, OfTokensTakeEachSequenceAsIfItWereAlone) {
  torch::manual_seed(5);
  const auto hidden = torch::randn({3, 6, 8}), ids = torch::randint(11, {3, 6}, torch::kLong);
  const auto mask = torch::tensor({{1, 1, 1, 1, 0, 0}, {0, 0, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1}});
  using namespace sentence;
  const Pooling pooled{{PoolingMode::Mean, PoolingMode::WeightedMean, PoolingMode::LastToken},
                       /*include_prompt=*/false};
  for (const int64_t stride : {1, 2}) {
    for (const std::vector<int64_t>& kernels : {std::vector<int64_t>{1, 3}, {4, 2}}) {
      SentenceStages stages(SentenceStagesOptions(8).stages(
          {WordWeights{11}, CNN{8, 5, kernels, {stride, stride}}, pooled}));
      stages->named_buffers()["1.emb_layer.weight"].uniform_(0.5, 2.0);
      EXPECT_TRUE(torch::allclose(stages->forward(hidden, mask, 1, ids),
                                  alone(stages, hidden, mask, 1, ids), 1e-5, 1e-6))
          << kernels << " " << stride;
    }
  }
}

TEST(SentenceStages, OfTokensRefuseWhatTheyCannotTake) {
  using namespace sentence;
  const auto hidden = torch::randn({1, 3, 8});
  SentenceStages words(SentenceStagesOptions(8).stages({WordWeights{4}, Pooling{}}));
  EXPECT_ERROR(words->forward(hidden), c10::ValueError,
               "stage 1, WordWeights: input_ids must be those of the tokens, [1, 3]. Got an "
               "undefined tensor");
  EXPECT_ERROR(words->forward(hidden, {}, 0, torch::tensor({{0, 4, 1}})), c10::ValueError,
               "input_ids must lie in [0, 4). Got 4");
  SentenceStages layers(SentenceStagesOptions(8).stages({WeightedLayerPooling{2, 1}, Pooling{}}));
  EXPECT_TRUE(layers->needs_hidden_states());
  EXPECT_ERROR(layers->forward(hidden), c10::ValueError,
               "hidden_states must be the embeddings and the output of each of its "
               "num_hidden_layers, 2. Got 0 hidden states");
  SentenceStages uneven(SentenceStagesOptions(8).stages({CNN{8, 2, {2, 3}}, Pooling{}}));
  EXPECT_ERROR(uneven->forward(hidden), c10::ValueError,
               "all convolutions must give the same number of rows. Got a kernel of 3");
  SentenceStages wide(SentenceStagesOptions(8).stages({CNN{8, 2, {8}}, Pooling{}}));
  EXPECT_ERROR(wide->forward(hidden.narrow(1, 0, 1)), c10::ValueError,
               "each sequence must have at least 2 tokens. Got 1");
  EXPECT_ERROR(SentenceStages(SentenceStagesOptions(8).stages({CNN{8, 2, {3}, {1, 1}}, Pooling{}})),
               c10::ValueError, "stride_sizes must be as many as kernel_sizes, 1. Got 2");
  EXPECT_ERROR(
      SentenceStages(SentenceStagesOptions(8).stages({WeightedLayerPooling{2, 3}, Pooling{}})),
      c10::ValueError, "layer_start must be from 0 to num_hidden_layers, 2. Got 3");
}

TEST(SentenceStages, WordsAreLookedUpAndThenTheirLowerCase) {
  const auto hidden = torch::ones({1, 4, 8}), ids = torch::tensor({{0, 1, 2, 3}});
  json config = {{"vocab", {"Cat", "dog", "Fox", "Ä"}},
                 {"word_weights", {{"cat", 2.0}, {"dog", 3}, {"Fox", 4.0}, {"fox", 5.0}}},
                 {"unknown_word_weight", 0.5}};
  StagesFolder folder;
  folder.add("WordWeights", "1", config);
  folder.add("Pooling", "2", {{"pooling_mode", "mean_sqrt_len_tokens"}});
  const double sum = 2.0 + 3.0 + 4.0 + 0.5;
  EXPECT_TRUE(torch::allclose(load_sentence_stages(folder.write())->forward(hidden, {}, 0, ids),
                              torch::full({1, 8}, std::sqrt(sum))));
  config["word_weights"]["ö"] = 1.0;
  StagesFolder other;
  other.add("WordWeights", "1", config);
  other.add("Pooling", "2", kMean);
  EXPECT_ERROR(load_sentence_stages(other.write()), c10::ValueError,
               "word_weights must have each word of `vocab` that has letters outside ASCII");
}

TEST(SentenceStages, LayersAreAveragedIfTheEncoderGivesThem) {
  const auto hidden = torch::randn({1, 3, 8}), second = torch::randn({1, 3, 8});
  auto tiny = TinyFolder::bert();
  StagesFolder folder;
  folder.add("WeightedLayerPooling", "1", {{"layer_start", 1}, {"num_hidden_layers", 2}});
  folder.add("Pooling", "2", kMean);
  const std::string path = folder.write();
  StateDict weights;
  weights.insert("layer_weights", torch::tensor({1.0F, 3.0F}));
  save_safetensors(path + "/1/model.safetensors", weights);
  EXPECT_FALSE(load_sentence_stages(path)->needs_hidden_states());
  tiny.config["output_hidden_states"] = true;
  folder.put("config.json", tiny.config);
  EXPECT_TRUE(torch::allclose(
      load_sentence_stages(path)->forward(hidden, {}, 0, {}, {hidden, hidden, second}),
      (hidden + 3 * second).mean(1) / 4, 1e-5, 1e-6));
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
      {{{"transformer_task", "any-to-any"}}, "Got \"any-to-any\""},
      {{{"processing_kwargs", {{"common", {{"padding", true}}}}}}, "common must be empty"},
      {{{"processing_kwargs", {{"text", {{"padding", true}}}}}}, "such as padding"},
      {{{"modality_config", {{"text", json::object()}, {"message", json::object()}}}},
       "message must not be there"},
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
  EXPECT_EQ(read.route().max_seq_length, 5);
  EXPECT_EQ(read.route().max_positions, 9);
  EXPECT_EQ(read.prompts.at("query"), "q: ");
  EXPECT_EQ(read.default_prompt_name, "query");
  EXPECT_EQ(read.truncate_dim, 4);
  EXPECT_TRUE(read.route().do_lower_case);
  folder.put("sentence_bert_config.json", {{"max_seq_length", 500}});
  EXPECT_EQ(read_sentence_folder(folder.write()).route().max_seq_length, 9)
      << "the table of positions";
  EXPECT_EQ(read.prompts.at("document"), "") << "which every model has";
  folder.put("sentence_bert_config.json",
             {{"max_seq_length", 5}, {"tokenizer_args", {{"model_max_length", 6}}}});
  EXPECT_EQ(read_sentence_folder(folder.write()).route().max_seq_length, 6)
      << "the tokenizer's own";
  folder.put("sentence_bert_config.json",
             {{"max_seq_length", 5}, {"processing_kwargs", {{"text", {{"max_length", 7}}}}}});
  EXPECT_EQ(read_sentence_folder(folder.write()).route().max_seq_length, 7) << "that of each call";
  folder.put("config_sentence_transformers.json", {{"default_prompt_name", "passage"}});
  EXPECT_ERROR(load_sentence_stages(folder.write()), c10::ValueError,
               "default_prompt_name must be the name of one of the prompts");
}

TEST(SentenceFolderSettings, AreIgnoredWhereThePackageIgnoresThem) {
  StagesFolder folder;
  folder.add("Pooling", "1", {{"pooling_mode", "cls"}});
  folder.put("sentence_bert_config.json", {{"max_seq_length", 5}});
  folder.put("config_sentence_transformers.json",
             {{"model_type", "CrossEncoder"}, {"prompts", {{"query", "q: "}}}});
  const auto read = read_sentence_folder(folder.write());
  EXPECT_FALSE(read.route().max_seq_length);
  EXPECT_EQ(read.prompts.at("query"), "");
  const auto hidden = torch::randn({1, 3, 8});
  EXPECT_TRUE(bit_equal(load_sentence_stages(folder.write())->forward(hidden), hidden.mean(1)));
  auto bare = TinyFolder::bert();
  write_bytes(bare.write() + "/sentence_bert_config.json", R"({"max_seq_length": 5})");
  EXPECT_FALSE(read_sentence_folder(bare.write()).route().max_seq_length);
  write_bytes(bare.write() + "/chat_template.jinja", "{{ messages }}");
  EXPECT_ERROR(read_sentence_folder(bare.write()), c10::ValueError,
               "must not have a chat template without a modules.json");
}

TEST(NamedPrompt, IsOneOfTheFolders) {
  const std::map<std::string, std::string> prompts = {{"passage", "p: "}, {"query", "q: "}};
  EXPECT_EQ(named_prompt(prompts, "passage"), "p: ");
  EXPECT_EQ(named_prompt(prompts, ""), "");
  EXPECT_ERROR(named_prompt(prompts, "corpus"), c10::ValueError,
               "must be one of the folder's (passage, query). Got corpus");
}

}  // namespace
}  // namespace posenc::testing
