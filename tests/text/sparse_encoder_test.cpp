// Sparse vectors. tests/differential/sparse.py compares them with sentence-transformers'.

#include "posenc/text/sparse_encoder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "posenc/models/classifier.h"
#include "posenc/models/frozen_file.h"
#include "posenc/models/save_sentence_model.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"
#include "support/temp_dir.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using sentence::Task;

const std::string kMasked = POSENC_LIVE_DIR "/encoder/masked";
const std::string kModules = "sentence_transformers.sparse_encoder.models.";
const std::vector<std::string> kSparseTexts = {"the library", "a b c the the the", "", "library"};

// A copy of a model with a head for masked words, which gets stages.
class SparseFolder {
 public:
  SparseFolder() : path_(dir_ / "model") { add_model(""); }
  const std::string& path() const { return path_; }

  void add_model(const std::string& inner) const {
    fs::copy(kMasked, fs::path(path_) / inner, fs::copy_options::recursive);
  }
  void put(const std::string& name, const json& value) const {
    const fs::path file = fs::path(path_) / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << value;
  }
  void remove(const std::string& name) const { fs::remove_all(fs::path(path_) / name); }
  // Stages by type and folder; they begin with the model.
  void list(const std::vector<std::pair<std::string, std::string>>& stages) const {
    json all = json::array();
    for (const auto& [type, inner] : stages)
      all.push_back({{"name", std::to_string(all.size())},
                     {"path", inner},
                     {"type", type.find('.') == std::string::npos ? kModules + type : type}});
    put("modules.json", all);
    put("config_sentence_transformers.json", {{"model_type", "SparseEncoder"}});
  }
  void list_splade(const json& settings = json::object()) const {
    list({{"MLMTransformer", ""}, {"SpladePooling", "1"}});
    put("1/config.json", settings);
  }
  // The weights of a table of tokens, with the tokenizer.
  torch::Tensor add_static(const std::string& inner) const {
    add_model(inner);
    put(inner + "/config.json", {{"frozen", true}});
    StateDict tensors;
    tensors.insert("weight", torch::randn({load_sparse_encoder(kMasked).width()}));
    save_safetensors((fs::path(path_) / inner / "model.safetensors").string(), tensors);
    return tensors["weight"];
  }

 private:
  TempDir dir_;
  std::string path_;
};

// The routes of a folder, where weights of tokens are multiplied by a factor.
std::vector<SentenceModelRoute> routes_of(const std::string& folder, double factor) {
  const SentenceFolder read = read_sentence_folder(folder);
  const auto stages = load_sentence_stages(read);
  std::vector<SentenceModelRoute> routes;
  for (size_t i = 0; i < stages.size(); ++i) {
    const torch::NoGradGuard no_grad;
    for (auto& weight : stages[i]->parameters()) weight.mul_(factor);
    routes.push_back({{}, stages[i]});
    if (read.routes[i].first == sentence::FirstStage::MaskedHead)
      routes.back().first = load_classifier(read.routes[i].encoder);
  }
  return routes;
}

// The largest difference, relative to the largest number.
double off_by(const torch::Tensor& got, const torch::Tensor& expected) {
  return ((got - expected).abs().max() / expected.abs().max()).item<double>();
}

torch::Tensor dense(const SparseVectors& vectors) { return vectors.to_torch().to_dense(); }

// The logits (L, V) of a text alone, by the modules.
torch::Tensor logits_of(const SparseEncoder& model, const std::string& text) {
  auto masked = load_classifier(kMasked);
  const auto ids = torch::tensor(model.tokenizer().encode_ids(text)).unsqueeze(0);
  return masked->forward(ids).logits.detach()[0];
}

TEST(SparseEncoder, IsSpladeOfAHeadForMaskedWords) {
  const torch::NoGradGuard no_grad;
  const auto model = load_sparse_encoder(kMasked);
  const auto got = dense(model.encode(kSparseTexts));
  SparseFolder folder;
  folder.list_splade({{"pooling_strategy", "sum"}, {"activation_function", "log1p_relu"}});
  const auto sums = dense(load_sparse_encoder(folder.path()).encode(kSparseTexts));
  for (std::size_t i = 0; i < kSparseTexts.size(); ++i) {
    const auto logits = logits_of(model, kSparseTexts[i]).relu();
    const auto row = static_cast<int64_t>(i);
    EXPECT_LT(off_by(got[row], std::get<0>(logits.log1p().max(0))), 1e-5) << i;
    EXPECT_LT(off_by(sums[row], logits.log1p().log1p().sum(0)), 1e-5) << i;
  }
  EXPECT_EQ(model.encode({}).crow_indices.sizes(), (torch::IntArrayRef{1}));
}

TEST(SparseEncoder, IsFrozenAsItsHeadIs) {
  const auto plain = dense(load_sparse_encoder(kMasked).encode(kSparseTexts));
  for (const auto weights : {WeightDtype::Int8, WeightDtype::BFloat16}) {
    const auto got =
        dense(load_sparse_encoder(kMasked, FreezeOptions().weights(weights)).encode(kSparseTexts));
    EXPECT_FALSE(bit_equal(got, plain));
    EXPECT_LT(off_by(got, plain), 0.1);
  }
  SparseFolder folder;
  folder.list_splade();
  const TempDir out;
  freeze_folder(folder.path(), out / "frozen");
  EXPECT_TRUE(bit_equal(dense(load_sparse_encoder(out / "frozen").encode(kSparseTexts)), plain));
  freeze_folder(kMasked, out / "bare");
  EXPECT_TRUE(bit_equal(dense(load_sparse_encoder(out / "bare").encode(kSparseTexts)), plain));
}

TEST(SparseEncoder, KeepsTheLargest) {
  const auto model = load_sparse_encoder(kMasked);
  const auto all = dense(model.encode({"the library"}));
  const auto most = model.encode({"the library"}, SparseEncodeOptions().max_active_dims(3));
  ASSERT_EQ(most.values.numel(), 3);
  EXPECT_TRUE(
      bit_equal(std::get<0>(most.values.sort()), std::get<0>(std::get<0>(all[0].topk(3)).sort())));
  EXPECT_TRUE(most.col_indices.equal(std::get<0>(most.col_indices.sort())));
  SparseFolder folder;
  folder.list_splade();
  folder.put("config_sentence_transformers.json",
             {{"model_type", "SparseEncoder"}, {"max_active_dims", 2}});
  const auto own = load_sparse_encoder(folder.path());
  EXPECT_EQ(own.encode({"the library"}).values.numel(), 2) << "the folder's";
  const auto options = SparseEncodeOptions().max_active_dims(4);
  EXPECT_EQ(own.encode({"the library"}, options).values.numel(), 4);
  EXPECT_ERROR(own.encode({"a"}, SparseEncodeOptions().max_active_dims(0)), c10::ValueError,
               "max_active_dims must be positive. Got 0");
}

TEST(SparseEncoder, DecodesByDescendingWeight) {
  const auto model = load_sparse_encoder(kMasked);
  SparseVectors vectors;
  vectors.crow_indices = torch::tensor({int64_t{0}, int64_t{3}, int64_t{3}});
  vectors.col_indices = torch::tensor({int64_t{1}, int64_t{4}, model.width() - 1});
  vectors.values = torch::tensor({0.5F, 2.0F, 0.5F});
  vectors.width = model.width();
  const auto tokens = model.decode(vectors);
  ASSERT_EQ(tokens.size(), 2);
  ASSERT_EQ(tokens[0].size(), 3);
  EXPECT_EQ(tokens[0][0].token, model.tokenizer().id_to_token(4));
  EXPECT_EQ(tokens[0][0].weight, 2.0F);
  EXPECT_EQ(tokens[0][1].token, model.tokenizer().id_to_token(1)) << "equal ones by column";
  EXPECT_TRUE(tokens[1].empty());
  EXPECT_EQ(model.decode(vectors, 1)[0].size(), 1);
  EXPECT_ERROR(model.decode(vectors, 0), c10::ValueError, "top_k must be positive. Got 0");
  auto other = vectors;
  other.width = 3;
  EXPECT_ERROR(model.decode(other), c10::ValueError, "vectors must have the width");
  other = vectors;
  other.values = torch::tensor({0.5F, 7.0F, 2.0F, 7.0F, 0.5F, 7.0F}).slice(0, 0, 6, 2);
  EXPECT_EQ(model.decode(other, 1)[0][0].weight, 2.0F) << "of values that are not contiguous";
  other.crow_indices = torch::tensor({int64_t{0}, int64_t{9}, int64_t{3}});
  EXPECT_ERROR(model.decode(other), c10::ValueError, "crow_indices must ascend");
  other.crow_indices = vectors.crow_indices.to(torch::kInt);
  EXPECT_ERROR(model.decode(other), c10::TypeError, "crow_indices must be int64");
}

// Presence, not a count, and no special tokens.
TEST(SparseEncoder, QueriesCanBeALookAtATable) {
  SparseFolder folder;
  const auto weight = folder.add_static("0");
  folder.list({{"SparseStaticEmbedding", "0"}});
  const auto model = load_sparse_encoder(folder.path());
  const auto got = dense(model.encode_query(kSparseTexts));
  auto expected = torch::zeros_like(got);
  for (int64_t i = 0; i < got.size(0); ++i) {
    const auto ids =
        model.tokenizer().encode_ids(kSparseTexts[static_cast<std::size_t>(i)], std::nullopt,
                                     TokenizerOptions().add_special_tokens(false));
    for (const int64_t id : ids) expected[i][id] = weight[id];
  }
  EXPECT_TRUE(bit_equal(got, expected));
  const auto counted = SparseEncodeOptions().on_truncated([](int64_t) {});
  EXPECT_TRUE(bit_equal(dense(model.encode_query(kSparseTexts, counted)), expected))
      << "by the module";
  EXPECT_EQ(model.encode({""}).values.numel(), 0);
}

TEST(SparseEncoder, WeightsCanBeByTokens) {
  SparseFolder folder;
  folder.add_static("0");
  folder.list({{"SparseStaticEmbedding", "0"}});
  folder.put("0/config.json", {{"path", "idf.json"}});
  folder.put("0/idf.json", {{"library", 2.5}, {"the", 0.0}});
  const auto model = load_sparse_encoder(folder.path());
  const auto vectors = model.encode({"the library"});
  ASSERT_EQ(vectors.values.numel(), 1);
  EXPECT_EQ(vectors.values.item<float>(), 2.5F);
  EXPECT_EQ(vectors.col_indices.item<int64_t>(), model.tokenizer().token_to_id("library"));
  for (const json& value : {json("much"), json(1e300)}) {
    folder.put("0/idf.json", {{"library", value}});
    EXPECT_ERROR(load_sparse_encoder(folder.path()), c10::ValueError,
                 "library must be a finite number");
  }
  for (const char* path : {"../../idf.json", "other.json"}) {
    folder.put("0/config.json", {{"path", path}});
    EXPECT_ERROR(load_sparse_encoder(folder.path()), c10::ValueError,
                 "path must be a file in the folder");
  }
}

TEST(SparseEncoder, ATableHasAWeightForEachToken) {
  SparseFolder folder;
  folder.add_static("0");
  folder.list({{"SparseStaticEmbedding", "0"}});
  const int64_t count = load_sparse_encoder(folder.path()).tokenizer().vocab_size();
  StateDict tensors;
  tensors.insert("weight", torch::randn({count - 1}));
  save_safetensors(folder.path() + "/0/model.safetensors", tensors);
  EXPECT_ERROR(load_sparse_encoder(folder.path()), c10::ValueError,
               "weight must have an entry for each token, " + std::to_string(count) + ". Got " +
                   std::to_string(count - 1));
}

TEST(SparseEncoder, OtherSimilaritiesThanItsOwnStandForNone) {
  SparseFolder folder;
  folder.list_splade();
  for (const auto& [name, is_known] : {std::pair("euclidean", true), {"maxsim", false}}) {
    folder.put("config_sentence_transformers.json",
               {{"model_type", "SparseEncoder"}, {"similarity_fn_name", name}});
    EXPECT_EQ(read_sentence_folder(folder.path()).similarity_fn_name.has_value(), is_known);
  }
}

TEST(SparseEncoder, TakesTheRouteOfATask) {
  SparseFolder folder;
  folder.add_static("query");
  folder.add_model("document");
  folder.put("document/sentence_bert_config.json", {{"transformer_task", "fill-mask"}});
  folder.put("pooling/config.json", json::object());
  folder.list({{"sentence_transformers.models.Router", ""}});
  const std::string base = "sentence_transformers.sparse_encoder.modules.";
  const json types = {{"query", base + "sparse_static_embedding.SparseStaticEmbedding"},
                      {"document", "sentence_transformers.base.modules.transformer.Transformer"},
                      {"pooling", base + "splade_pooling.SpladePooling"}};
  folder.put("router_config.json",
             {{"types", types},
              {"structure", {{"query", {"query"}}, {"document", {"document", "pooling"}}}},
              {"parameters", {{"default_route", "document"}}}});
  const auto model = load_sparse_encoder(folder.path());
  const auto splade = dense(load_sparse_encoder(kMasked).encode(kSparseTexts));
  EXPECT_TRUE(bit_equal(dense(model.encode_document(kSparseTexts)), splade));
  EXPECT_TRUE(bit_equal(dense(model.encode(kSparseTexts)), splade));
  EXPECT_LE(model.encode_query({"library"}).values.numel(), 2);
  const TempDir out;
  freeze_folder(folder.path(), out / "frozen");
  EXPECT_TRUE(is_frozen_folder(out / "frozen/document"));
  const auto frozen = load_sparse_encoder(out / "frozen");
  EXPECT_TRUE(bit_equal(dense(frozen.encode_document(kSparseTexts)), splade));
  EXPECT_TRUE(
      bit_equal(dense(frozen.encode_query(kSparseTexts)), dense(model.encode_query(kSparseTexts))));
  freeze_folder(folder.path(), out / "frozen");  // once more
  const auto stages =
      SentenceStages(SentenceStagesOptions(model.width()).stages({sentence::SpladePooling{}}));
  EXPECT_ERROR(save_sentence_model(load_classifier(kMasked), stages, out / "saved",
                                   SaveSentenceModelOptions(folder.path())),
               c10::ValueError, "source must be a model without a Router");
  EXPECT_EQ(out.entries(), 1U);
  save_sentence_model(routes_of(folder.path(), 0.5), out / "saved",
                      SaveSentenceModelOptions(folder.path()));
  const auto saved = load_sparse_encoder(out / "saved");
  EXPECT_TRUE(bit_equal(dense(saved.encode_query(kSparseTexts)),
                        0.5 * dense(model.encode_query(kSparseTexts))));
  EXPECT_TRUE(bit_equal(dense(saved.encode_document(kSparseTexts)), splade));
  auto two = routes_of(folder.path(), 0.5);
  two.pop_back();
  EXPECT_ERROR(save_sentence_model(two, out / "fewer", SaveSentenceModelOptions(folder.path())),
               c10::ValueError, "source must be a model without a Router");
  EXPECT_ERROR(save_sentence_model({}, out / "none", SaveSentenceModelOptions(folder.path())),
               c10::ValueError, "routes must be at least one");
  two = routes_of(folder.path(), 0.5);
  std::swap(two[0], two[1]);
  EXPECT_ERROR(save_sentence_model(two, out / "swapped", SaveSentenceModelOptions(folder.path())),
               c10::ValueError, "source must be a model with");
  folder.remove("query/model.safetensors");
  EXPECT_ERROR(load_sparse_encoder(folder.path()), WeightsError, "must hold model.safetensors");
}

TEST(SparseEncoder, WeightsByTokensAreSavedAsATensor) {
  SparseFolder folder;
  folder.list({{"MLMTransformer", ""}, {"SpladePooling", "1"}, {"SparseStaticEmbedding", "2"}});
  folder.put("1/config.json", json::object());
  folder.put("2/config.json", {{"path", "idf.json"}});
  folder.put("2/idf.json", {{"library", 2.5}});
  const int64_t width = load_sparse_encoder(kMasked).width();
  const auto stages = SentenceStages(SentenceStagesOptions(width).stages(
      {sentence::SpladePooling{}, sentence::SparseStaticEmbedding{width}}));
  const TempDir out;
  save_sentence_model(load_classifier(kMasked), stages, out / "saved",
                      SaveSentenceModelOptions(folder.path()));
  EXPECT_FALSE(fs::exists(out / "saved/2/idf.json"));
  const auto saved = load_sparse_encoder(out / "saved");  // whose weights are all 1
  const auto words = dense(load_sparse_encoder(kMasked).encode(kSparseTexts));
  const auto vectors = dense(saved.encode(kSparseTexts));
  EXPECT_TRUE(bit_equal(vectors, torch::where(vectors == 0, 0.0, words)));
  EXPECT_GT(vectors.count_nonzero().item<int64_t>(), 0);
}

TEST(SparseEncoder, RefusesWhatItCannotRead) {
  EXPECT_ERROR(load_sparse_encoder(POSENC_LIVE_DIR "/encoder/bert"), c10::ValueError,
               "must be a SparseEncoder, all of whose layers are in the folder");
  SparseFolder folder;
  const std::pair<json, const char*> bad[] = {
      {{{"pooling_strategy", "mean"}}, "pooling_strategy must be max or sum. Got \"mean\""},
      {{{"activation_function", "gelu"}}, "activation_function must be relu or log1p_relu"}};
  for (const auto& [settings, rule] : bad) {
    folder.list_splade(settings);
    EXPECT_ERROR(load_sparse_encoder(folder.path()), c10::ValueError, rule);
  }
  folder.list_splade();
  folder.put("sentence_bert_config.json", {{"transformer_task", "text-generation"}});
  EXPECT_ERROR(load_sparse_encoder(folder.path()), c10::ValueError,
               "transformer_task must be fill-mask in a model of this class. Got "
               "\"text-generation\"");
  folder.put("sentence_bert_config.json", json::object());
  folder.list({{"MLMTransformer", ""}, {"sentence_transformers.models.Normalize", "1"}});
  EXPECT_ERROR(load_sparse_encoder(folder.path()), c10::ValueError, "unless SpladePooling follows");
  folder.list_splade();
  EXPECT_ERROR(
      load_sparse_encoder(folder.path()).encode({"a"}, SparseEncodeOptions().prompt_name("x")),
      c10::ValueError, "the name of a prompt must be one of the folder's");
}

// BGE-M3's weights of tokens, without those of cls, eos, pad and unk; BERT's [SEP] is none of them.
TEST(SparseEncoder, TakesTheLargestWeightOfEachToken) {
  SparseFolder folder;
  auto config = json::parse(read_bytes(folder.path() + "/config.json"));
  config["architectures"] = {"BertModel"};
  folder.put("config.json", config);
  EXPECT_ERROR(load_sparse_encoder(folder.path()), c10::ValueError, "must be a SparseEncoder");
  const int64_t width = config["hidden_size"];
  StateDict tensors;
  tensors.insert("weight", torch::randn({1, width}));
  tensors.insert("bias", torch::ones({1}));
  save_safetensors(folder.path() + "/sparse_linear.pt", tensors);
  const auto model = load_sparse_encoder(folder.path());
  const auto got = dense(model.encode({"the library the"}));
  const TempDir out;
  freeze_folder(folder.path(), out / "frozen");
  const auto frozen = load_sparse_encoder(out / "frozen").encode({"the library the"});
  EXPECT_TRUE(bit_equal(dense(frozen), got)) << "with its heads";
  auto encoder = load_encoder(folder.path());
  const auto ids = model.tokenizer().encode_ids("the library the");
  const auto hidden =
      encoder->forward(torch::tensor(ids).unsqueeze(0)).last_hidden_state.detach()[0];
  const auto weights = (hidden.matmul(tensors["weight"].t()) + tensors["bias"]).relu().squeeze(1);
  auto expected = torch::zeros({model.width()});
  for (std::size_t i = 1; i < ids.size(); ++i)
    expected[ids[i]] = torch::max(expected[ids[i]], weights[static_cast<int64_t>(i)]);
  EXPECT_LT(off_by(got[0], expected), 1e-5);
}

}  // namespace
}  // namespace posenc::testing
