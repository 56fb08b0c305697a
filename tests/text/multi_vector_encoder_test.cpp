// Vectors of tokens by any number of threads, in batches of any size and in 8 bits, and what
// options are refused. tests/differential/multivector.py compares them with the package.

#include "posenc/text/multi_vector_encoder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "posenc/models/frozen_file.h"
#include "posenc/models/save_pretrained.h"
#include "posenc/weights/save.h"
#include "support/compare.h"
#include "support/temp_dir.h"
#include "support/threads.h"

namespace posenc::testing {
namespace {

constexpr const char* kConfig = R"({"model_type": "bert", "vocab_size": 40, "hidden_size": 16,
    "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 24})";

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// A folder with a query expansion, a projection, a skiplist and a norm.
class MultiVectors : public ::testing::Test {
 protected:
  void SetUp() override {
    torch::manual_seed(3);
    Encoder encoder(encoder_options_from_hf(kConfig));
    save_pretrained(encoder, path());
    std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[unused0]\n.\n";
    for (int i = 0; i < 33; ++i) words += "w" + std::to_string(i) + "\n";
    write_text(folder_.path() / "vocab.txt", words);
    write_text(folder_.path() / "tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer"})");
    write_text(folder_.path() / "config_sentence_transformers.json",
               R"({"model_type": "MultiVectorEncoder", "query_prefix": "[unused0] "})");
    write_text(folder_.path() / "sentence_bert_config.json",
               R"({"query_expansion": {"strategy": "fixed", "length": 9}, "document_length": 12})");
    const std::string type = R"("type": "sentence_transformers.models.)";
    write_text(folder_.path() / "modules.json",
               R"([{"name": "0", "path": "", )" + type + R"(Transformer"}, )" +
                   R"({"name": "1", "path": "1", )" + type + R"(Dense"}, )" +
                   R"({"name": "2", "path": "2", )" + type + R"(MultiVectorMask"}, )" +
                   R"({"name": "3", "path": "3", )" + type + R"(Normalize"}])");
    write_text(folder_.path() / "1" / "config.json",
               R"({"in_features": 16, "out_features": 6, "bias": false})");
    StateDict dense;
    dense.insert("linear.weight", torch::randn({6, 16}));
    save_tensors((folder_.path() / "1" / "model.safetensors").string(), dense);
    write_text(folder_.path() / "2" / "config.json", R"({"skiplist_words": ["."]})");
    write_text(folder_.path() / "3" / "config.json",
               R"({"module_input_name": "token_embeddings"})");
  }
  std::string path() const { return folder_.path().string(); }

  const std::vector<std::string> texts_ = {"w1 w2 . w3", "w4", "", "w5 w6 w7 w8 . . w9 w10 w11 w12",
                                           "w13 w14"};

 private:
  TempDir folder_;
};

TEST_F(MultiVectors, QueriesAreFilledUpAndDocumentsLeaveTokensOut) {
  const auto model = load_multi_vector_encoder(path());
  const auto queries = model.encode_query(texts_);
  EXPECT_TRUE(torch::equal(queries.lengths, torch::full({5}, 9, torch::kLong)));
  const auto documents = model.encode_document(texts_);
  EXPECT_TRUE(torch::equal(documents.lengths, torch::tensor({5, 3, 2, 10, 4})));
  EXPECT_EQ(documents.embeddings.sizes(), at::IntArrayRef({24, 6}));
  EXPECT_EQ(model.similarity(queries, documents).sizes(), at::IntArrayRef({5, 5}));
  const auto none = model.encode({});
  EXPECT_EQ(none.embeddings.sizes(), at::IntArrayRef({0, 6}));
  EXPECT_EQ(none.lengths.numel(), 0);
  // [CLS] [unused0] w1 [SEP]: the marker is one token.
  EXPECT_EQ(model.tokenizer().encode_ids("[unused0] w1"), (std::vector<int64_t>{2, 5, 8, 3}));
}

TEST_F(MultiVectors, NeitherThreadsNorBatchesChangeAText) {
  for (const auto& options : {FreezeOptions(), FreezeOptions().weights(WeightDtype::Int8)}) {
    const auto model = load_multi_vector_encoder(path(), options);
    for (const auto task : {sentence::Task::None, sentence::Task::Query}) {
      const auto how = MultiVectorEncodeOptions().task(task);
      const auto all = model.encode(texts_, how);
      for (const int threads : {1, 2, 4}) {
        const Threads some(threads);
        EXPECT_TRUE(bit_equal(model.encode(texts_, how).embeddings, all.embeddings));
      }
      std::vector<torch::Tensor> alone;
      for (const std::string& text : texts_) alone.push_back(model.encode({text}, how).embeddings);
      EXPECT_TRUE(torch::allclose(torch::cat(alone), all.embeddings, 1e-5, 1e-5));
    }
  }
}

TEST_F(MultiVectors, FewerVectorsOfDocuments) {
  const auto model = load_multi_vector_encoder(path());
  const auto pooled = MultiVectorEncodeOptions().token_pooling(sentence::TokenPooling{2.0});
  EXPECT_TRUE(
      torch::equal(model.encode_document(texts_, pooled).lengths, torch::tensor({3, 2, 2, 5, 2})));
  EXPECT_TRUE(
      torch::equal(model.encode_query(texts_, pooled).lengths, torch::full({5}, 9, torch::kLong)));
}

TEST_F(MultiVectors, OfAFrozenFolder) {
  const auto plain = load_multi_vector_encoder(path());
  const TempDir out;
  freeze_folder(path(), out / "frozen");
  const auto frozen = load_multi_vector_encoder(out / "frozen");
  for (const auto task : {sentence::Task::None, sentence::Task::Query}) {
    const auto how = MultiVectorEncodeOptions().task(task);
    EXPECT_TRUE(
        bit_equal(frozen.encode(texts_, how).embeddings, plain.encode(texts_, how).embeddings));
  }
}

// Stanford's ColBERT has its projection among the weights of the encoder.
TEST_F(MultiVectors, OfAFrozenFolderOfStanford) {
  for (const char* file : {"modules.json", "config_sentence_transformers.json"})
    std::filesystem::remove(path() + "/" + file);
  auto config = nlohmann::json::parse(kConfig);
  config["architectures"] = {"HF_ColBERT"};
  write_text(path() + "/config.json", config.dump());
  write_text(path() + "/artifact.metadata", R"({"query_maxlen": 8})");
  StateDict tensors;
  for (const auto& item : load_tensors(path() + "/model.safetensors"))
    tensors.insert("bert." + item.key(), item.value());
  tensors.insert("linear.weight", torch::randn({6, 16}));
  save_tensors(path() + "/model.safetensors", tensors);
  const auto plain = load_multi_vector_encoder(path()).encode_query(texts_);
  EXPECT_EQ(plain.embeddings.sizes(), at::IntArrayRef({40, 6}));
  const TempDir out;
  for (int time = 0; time < 2; ++time) {  // the second replaces the first
    LoadReport report;
    freeze_folder(path(), out / "frozen", {}, LoadOptions().report(&report));
    EXPECT_TRUE(report.unexpected.empty());
    EXPECT_TRUE(bit_equal(load_multi_vector_encoder(out / "frozen").encode_query(texts_).embeddings,
                          plain.embeddings));
  }
}

TEST_F(MultiVectors, OptionsOutOfRange) {
  const auto model = load_multi_vector_encoder(path());
  const auto refuses = [&](const MultiVectorEncodeOptions& options, const std::string& rule) {
    EXPECT_NE(message_of([&] { model.encode(texts_, options); }).find(rule), std::string::npos);
  };
  const auto pooling = [](double factor, int64_t tokens) {
    return MultiVectorEncodeOptions().token_pooling(sentence::TokenPooling{factor, tokens});
  };
  refuses(MultiVectorEncodeOptions().batch_size(0), "batch_size must be positive. Got 0");
  refuses(pooling(0.5, 1), "factor of token_pooling must be at least 1. Got 0.5");
  refuses(pooling(2.0, -1), "protected_tokens of token_pooling must not be negative. Got -1");
  refuses(MultiVectorEncodeOptions().prompt_name("passage"), "passage");
}

}  // namespace
}  // namespace posenc::testing
