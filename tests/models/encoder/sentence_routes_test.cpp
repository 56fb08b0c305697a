// Classes of folders, their tasks and the routes of a Router. tests/differential/sentence_texts.py
// compares the vectors with sentence-transformers'.

#include <gtest/gtest.h>

#include "models/encoder/stages_folder.h"
#include "posenc/models/inspect_folder.h"
#include "posenc/models/sentence_folder.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

using nlohmann::json;
using sentence::Task;

const json kMeanPooling = {{"pooling_mode_mean_tokens", true}};
const std::string kPackage = "sentence_transformers.models.";

TEST(SentenceKind, IsThatOfTheFolder) {
  StagesFolder folder;
  folder.add("Pooling", "1", kMeanPooling);
  const std::pair<const char*, SentenceKind> kinds[] = {
      {"SentenceTransformer", SentenceKind::Dense},
      {"SparseEncoder", SentenceKind::Sparse},
      {"MultiVectorEncoder", SentenceKind::MultiVector},
      {"ColBERT", SentenceKind::MultiVector},
      {"CrossEncoder", SentenceKind::CrossEncoder}};
  for (const auto& [name, kind] : kinds) {
    folder.put("config_sentence_transformers.json", {{"model_type", name}});
    EXPECT_EQ(inspect_sentence_kind(folder.write()), kind) << name;
  }
  folder.put("config_sentence_transformers.json", {{"query_prefix", "[Q] "}});
  EXPECT_EQ(inspect_sentence_kind(folder.write()), SentenceKind::MultiVector) << "older PyLate";
  folder.put("config_sentence_transformers.json", {{"model_type", "Reranker"}});
  EXPECT_ERROR(inspect_sentence_kind(folder.write()), c10::ValueError,
               "model_type must be SentenceTransformer, SparseEncoder, MultiVectorEncoder");
  auto bare = TinyFolder::bert();
  const std::pair<const char*, SentenceKind> classes[] = {
      {"BertModel", SentenceKind::Dense},
      {"BertForMaskedLM", SentenceKind::Dense},
      {"BertForCausalLM", SentenceKind::CrossEncoder},
      {"BertForSequenceClassification", SentenceKind::CrossEncoder},
      {"HF_ColBERT", SentenceKind::MultiVector}};
  for (const auto& [name, kind] : classes) {
    bare.config["architectures"] = {name};
    EXPECT_EQ(inspect_sentence_kind(bare.write()), kind) << name;
    const TempDir adapter;  // which has no config.json of its own
    write_bytes(adapter / "adapter_config.json", R"({"peft_type": "LORA"})");
    EXPECT_EQ(inspect_sentence_kind(adapter.path().string(), bare.write()), kind) << name;
  }
}

TEST(SentenceKind, OfAnotherFolderIsRefusedByName) {
  StagesFolder folder;
  folder.add("Pooling", "1", kMeanPooling);
  EXPECT_ERROR(read_sentence_folder(folder.write(), SentenceKind::Sparse), c10::ValueError,
               "must be a SparseEncoder, all of whose layers are in the folder; "
               "sentence-transformers draws those that others lack at random. Got a "
               "SentenceTransformer, which load_sentence_encoder() loads");
  EXPECT_ERROR(read_sentence_folder(TinyFolder::bert().write(), SentenceKind::MultiVector),
               c10::ValueError, "must be a MultiVectorEncoder");
  const std::pair<const char*, const char*> others[] = {{"SparseEncoder", "load_sparse_encoder"},
                                                        {"ColBERT", "load_multi_vector_encoder"}};
  for (const auto& [name, loader] : others) {
    folder.put("config_sentence_transformers.json", {{"model_type", name}});
    EXPECT_ERROR(read_sentence_folder(folder.write(), SentenceKind::Dense), c10::ValueError,
                 "must be a SentenceTransformer. Got a");
    EXPECT_ERROR(read_sentence_folder(folder.write(), SentenceKind::Dense), c10::ValueError,
                 loader);
  }
}

TEST(SentenceKind, DenseReadsTokensInAModelOfVectorsPerToken) {
  StagesFolder folder;
  folder.add("Dense", "1");
  const auto weight = folder.put_dense("1", 4, 8);
  folder.put("config_sentence_transformers.json", {{"model_type", "MultiVectorEncoder"}});
  const auto hidden = torch::randn({2, 3, 8});
  auto stages = load_sentence_stages(folder.write());
  EXPECT_EQ(stages->width(), 4);
  const auto vectors = stages->forward_tokens(hidden, {}, {}, sentence::Task::None);
  EXPECT_TRUE(vectors.embeddings.allclose(hidden.matmul(weight.t()).flatten(0, 1)));
  EXPECT_TRUE(torch::equal(vectors.lengths, torch::tensor({3, 3})));
}

// A Router after the pooling, as releases before 5 wrote it.
class RoutedFolder : public StagesFolder {
 public:
  RoutedFolder() {
    add("Pooling", "1", kMeanPooling);
    add("Asym", "2");
    for (const char* id : {"query_0_Dense", "document_0_Dense", "both"})
      weights[id] = put_dense(std::string("2/") + id, 4, 8);
  }
  void route(const json& structure, const json& parameters = json::object()) {
    json types;
    for (const auto& [id, weight] : weights) types[id] = kPackage + "Dense.Dense";
    put("2/config.json", {{"types", types}, {"structure", structure}, {"parameters", parameters}});
  }

  std::map<std::string, torch::Tensor> weights;
};

const json kRoutes = {{"query", {"query_0_Dense"}}, {"document", {"document_0_Dense"}}};

TEST(Router, ChoosesTheStagesOfATask) {
  const auto hidden = torch::randn({2, 3, 8});
  RoutedFolder folder;
  const auto is_taken = [&](Task task, const char* id) {
    auto stages = load_sentence_stages(folder.write(), {}, task);
    return stages->forward(hidden).allclose(hidden.mean(1).matmul(folder.weights[id].t()));
  };
  folder.route(kRoutes, {{"allow_empty_key", true}});
  EXPECT_TRUE(is_taken(Task::Query, "query_0_Dense"));
  EXPECT_TRUE(is_taken(Task::Document, "document_0_Dense"));
  folder.route(kRoutes, {{"default_route", "query"}});
  EXPECT_TRUE(is_taken(Task::None, "query_0_Dense"));
  folder.route({{"text", {"both"}}, {"query", {"query_0_Dense"}}});
  EXPECT_TRUE(is_taken(Task::None, "both"));
  EXPECT_TRUE(is_taken(Task::Document, "both")) << "by the modality";
  const json mappings = {{"('query', None)", "b"},
                         {"('query', 'text')", "a"},
                         {"(None, 'image')", "b"},
                         {"(None, (\"image\", \"text\"))", "b"},
                         {"(None, None)", "c"}};
  folder.route({{"a", {"query_0_Dense"}}, {"b", {"document_0_Dense"}}, {"c", {"both"}}},
               {{"route_mappings", mappings}});
  EXPECT_TRUE(is_taken(Task::Query, "query_0_Dense"));
  EXPECT_TRUE(is_taken(Task::Document, "both"));
  EXPECT_TRUE(is_taken(Task::None, "both"));
}

// The first in the file's order, which is not that of the alphabet.
TEST(Router, WithoutADefaultTakesTheFirstRoute) {
  RoutedFolder folder;
  folder.route(kRoutes);
  const std::string path = folder.write();
  write_bytes(path + "/2/router_config.json",
              R"({"types": {"both": "sentence_transformers.models.Dense",
      "query_0_Dense": "sentence_transformers.models.Dense"},
      "structure": {"query": ["query_0_Dense"], "document": ["both"]}, "parameters": {}})");
  const auto hidden = torch::randn({2, 3, 8});
  EXPECT_TRUE(load_sentence_stages(path)->forward(hidden).allclose(
      hidden.mean(1).matmul(folder.weights["query_0_Dense"].t())));
}

TEST(Router, HasOneModuleForAStageOfSeveralRoutes) {
  RoutedFolder folder;
  folder.route({{"query", {"both"}}, {"document", {"both", "both"}}});
  EXPECT_ERROR(load_sentence_stages(folder.write()), c10::ValueError,
               "in_features must be the width of what it gets, 4. Got 8");
  folder.weights["both"] = folder.put_dense("2/both", 8, 8);
  const auto read = read_sentence_folder(folder.write());
  ASSERT_EQ(read.routes.size(), 2);
  EXPECT_EQ(read.route(Task::None).tasks, (std::vector<Task>{Task::None, Task::Document}));
  LoadReport report;
  auto stages = load_sentence_stages(read, LoadOptions().report(&report));
  EXPECT_EQ(report.loaded, (std::vector<std::string>{"2.linear.weight"}));
  const auto weight_of = [&](std::size_t route, const char* name) {
    return stages[route]->named_parameters()[name];
  };
  EXPECT_TRUE(weight_of(0, "2.linear.weight").is_same(weight_of(1, "2.linear.weight")));
  EXPECT_TRUE(weight_of(0, "2.linear.weight").is_same(weight_of(0, "3.linear.weight")));
}

TEST(Router, RefusesATaskWithoutARoute) {
  RoutedFolder folder;
  folder.route({{"document", {"both"}}}, {{"default_route", "document"}});
  EXPECT_ERROR(load_sentence_stages(folder.write(), {}, Task::Query), c10::ValueError,
               "task must be one of those with a route (no task, document). Got query");
  folder.route(kRoutes, {{"allow_empty_key", false}});
  EXPECT_ERROR(load_sentence_stages(folder.write()), c10::ValueError,
               "with a route (query, document). Got no task");
  folder.route({{"image", {"both"}}}, {{"allow_empty_key", false}});
  EXPECT_ERROR(read_sentence_folder(folder.write()), c10::ValueError,
               "a Router must have a default route");
}

TEST(Router, RefusesWhatIsNone) {
  RoutedFolder folder;
  const std::tuple<json, json, const char*> bad[] = {
      {kRoutes, {{"default_route", "image"}}, "default_route must be the name of a route"},
      {kRoutes, {{"route_mappings", {{"(None, None)", "c"}}}}, "must be the name of a route"},
      {kRoutes, {{"route_mappings", {{"query", "query"}}}}, "must be a tuple of a task"},
      {{{"query", {"other"}}}, json::object(), "must be names that are in `types`"},
      {json::object(), json::object(), "structure must have a route"}};
  for (const auto& [structure, parameters, rule] : bad) {
    folder.route(structure, parameters);
    EXPECT_ERROR(read_sentence_folder(folder.write()), c10::ValueError, rule);
  }
  folder.put("2/router_config.json",
             {{"types", {{"../1", kPackage + "Dense"}}}, {"structure", {{"query", {"../1"}}}}});
  EXPECT_ERROR(read_sentence_folder(folder.write()), c10::ValueError,
               "path must be a folder inside the model's");
  folder.put("2/router_config.json",
             {{"types", {{"a", "custom.Dense"}}}, {"structure", {{"query", {"a"}}}}});
  EXPECT_ERROR(read_sentence_folder(folder.write()), c10::ValueError,
               "code in the folder is not run. Got custom.Dense");
}

TEST(Router, RoutesMustHaveOneWidth) {
  RoutedFolder folder;
  folder.route(kRoutes);
  folder.put_dense("2/query_0_Dense", 5, 8);
  EXPECT_ERROR(load_sentence_stages(read_sentence_folder(folder.write())), c10::ValueError,
               "the vectors of all routes must have one width. Got 4 and 5");
}

// What no task reaches is not read: another program's modality, for one.
TEST(Router, DoesNotReadRoutesThatNoTaskTakes) {
  RoutedFolder folder;
  folder.route(kRoutes, {{"default_route", "document"}});
  const json dense = kPackage + "Dense", clip = kPackage + "CLIPModel";
  const json types = {{"query_0_Dense", dense}, {"document_0_Dense", dense}, {"clip", clip}};
  json structure = kRoutes;
  structure["image"] = {"clip"};
  folder.put("2/router_config.json", {{"types", types},
                                      {"structure", structure},
                                      {"parameters", {{"default_route", "document"}}}});
  EXPECT_EQ(read_sentence_folder(folder.write()).routes.size(), 2);
  folder.put(
      "2/router_config.json",
      {{"types", types}, {"structure", structure}, {"parameters", {{"default_route", "image"}}}});
  EXPECT_ERROR(read_sentence_folder(folder.write()), c10::ValueError, "CLIPModel");
}

TEST(Router, IsDescribedWithItsRoutes) {
  RoutedFolder folder;
  folder.route(kRoutes);
  EXPECT_EQ(inspect_folder(folder.write()).sentence_class, "SentenceTransformer");
  EXPECT_EQ(
      inspect_folder(folder.write()).sentence_stages,
      (std::vector<std::string>{"Pooling (mean_tokens)", "Asym (document: Dense; query: Dense)"}));
}

TEST(Tasks, HaveLengthsThatBeatTheOthers) {
  StagesFolder folder;
  folder.add("Pooling", "1", kMeanPooling);
  const auto most = [&](const json& settings, Task task) {
    folder.put("sentence_bert_config.json", settings);
    const auto read = read_sentence_folder(folder.write());
    return max_tokens_of_text(read.route(task), task, 3).value();
  };
  const json both = {{"query_length", 4}, {"document_length", 100}, {"max_seq_length", 2}};
  EXPECT_EQ(most(both, Task::None), 2);
  EXPECT_EQ(most(both, Task::Query), 4) << "even upwards";
  EXPECT_EQ(most(both, Task::Document), 9) << "the table of positions";
  EXPECT_EQ(most({{"query_length", 4}}, Task::Document), 3) << "the tokenizer's";
  const json call = {{"query_length", 4}, {"processing_kwargs", {{"text", {{"max_length", 6}}}}}};
  EXPECT_EQ(most(call, Task::Query), 6) << "that of each call";
}

TEST(QueryExpansion, IsReadWithItsRules) {
  StagesFolder folder;
  folder.put("config_sentence_transformers.json", {{"model_type", "MultiVectorEncoder"}});
  const auto route = [&](const json& expansion, const json& length = nullptr) {
    folder.put("sentence_bert_config.json",
               {{"query_expansion", expansion}, {"query_length", length}});
    return read_sentence_folder(folder.write()).route();
  };
  const auto fixed = route({{"strategy", "fixed"}, {"length", 7}, {"token", nullptr}});
  EXPECT_EQ(fixed.query_expansion->strategy, sentence::QueryExpansion::Strategy::Fixed);
  EXPECT_FALSE(fixed.query_expansion->attend);
  EXPECT_EQ(max_tokens_of_text(fixed, Task::Query, 3), 7);
  EXPECT_EQ(max_tokens_of_text(fixed, Task::Document, 3), 3);
  const auto least =
      route({{"strategy", "min"}, {"length", 4}, {"attend", true}, {"token", "x"}}, 6);
  EXPECT_EQ(least.query_expansion->token, "x");
  EXPECT_TRUE(least.query_expansion->attend);
  EXPECT_EQ(max_tokens_of_text(least, Task::Query, 3), 6);
  EXPECT_FALSE(route(nullptr).query_expansion);
  const std::tuple<json, json, const char*> bad[] = {
      {{{"strategy", "fixed"}}, nullptr, "length must be"},
      {{{"strategy", "fixed"}, {"length", 0}}, nullptr, "length must be"},
      {{{"strategy", "fixed"}, {"length", 10}}, nullptr, "length must be"},
      {{{"strategy", "all"}, {"length", 4}}, nullptr, "strategy must be fixed or min"},
      {{{"strategy", "min"}, {"length", 4}, {"mask", 1}}, nullptr, "such as mask"},
      {{{"strategy", "min"}, {"length", 4}}, 3, "query_length must not be below the length"}};
  for (const auto& [expansion, length, rule] : bad)
    EXPECT_ERROR(route(expansion, length), c10::ValueError, rule);
  folder.put("config_sentence_transformers.json", {{"model_type", "SentenceTransformer"}});
  EXPECT_ERROR(route({{"strategy", "fixed"}, {"length", 7}}), c10::ValueError,
               "query_expansion must be null in a SentenceTransformer");
}

}  // namespace
}  // namespace posenc::testing
