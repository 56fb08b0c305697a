// Reranker's options and errors, and its order. What the scores are, tests/differential/rerank.py
// compares with sentence-transformers.
#include "posenc/text/reranker.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <sstream>

#include "posenc/models/decoder.h"
#include "posenc/models/frozen_file.h"
#include "posenc/text/text_classifier.h"
#include "support/compare.h"
#include "support/temp_dir.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

const std::string kFolders = POSENC_LIVE_DIR "/encoder/";

std::vector<int64_t> order(const std::vector<RankedDocument>& ranking) {
  std::vector<int64_t> ids;
  for (const RankedDocument& one : ranking) ids.push_back(one.corpus_id);
  return ids;
}

TEST(RankedDocuments, EqualScoresKeepTheirOrder) {
  const auto scores = torch::tensor({1.0, 3.0, 2.0, 3.0, 1.0});
  EXPECT_EQ(order(ranked_documents(scores)), (std::vector<int64_t>{1, 3, 2, 0, 4}));
  EXPECT_EQ(order(ranked_documents(scores, 2)), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(order(ranked_documents(scores, 4)), (std::vector<int64_t>{1, 3, 2, 0}));
  EXPECT_EQ(ranked_documents(scores, 9).size(), 5U);
  EXPECT_EQ(ranked_documents(scores)[2].score, 2.0);
  EXPECT_TRUE(ranked_documents(torch::zeros({0})).empty());
}

TEST(RankedDocuments, NaNComesLast) {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  const auto scores = torch::tensor({nan, -1.0, nan, 1.0});
  EXPECT_EQ(order(ranked_documents(scores)), (std::vector<int64_t>{3, 1, 0, 2}));
}

TEST(RankedDocuments, Errors) {
  EXPECT_ERROR(ranked_documents(torch::zeros({1, 2})), c10::ValueError,
               "[ranked_documents] scores must be (N). Got [1, 2]");
  EXPECT_ERROR(ranked_documents(torch::zeros({2}), 0), c10::ValueError,
               "[ranked_documents] top_k must be positive. Got 0");
}

const std::vector<std::string> kDocuments = {"the library", "posenc is a library", "the library",
                                             "a", "posenc"};

TEST(Reranker, RanksByScoresThatPairsHaveAlone) {
  const auto model = load_reranker(kFolders + "reranker");
  const auto ranking = model.rank("posenc", kDocuments, RankOptions().batch_size(2));
  ASSERT_EQ(ranking.size(), kDocuments.size());
  for (std::size_t i = 0; i < ranking.size(); ++i) {
    const auto& document = kDocuments[static_cast<std::size_t>(ranking[i].corpus_id)];
    EXPECT_NEAR(ranking[i].score, model.score({{"posenc", document}})[0].item<float>(), 1e-6);
    EXPECT_GE(ranking[i - std::min<std::size_t>(i, 1)].score, ranking[i].score);
  }
  const auto of_head = load_text_classifier(kFolders + "reranker");
  const auto logit = of_head.pair_scores({{"posenc", "a"}},
                                         TextClassifyOptions().function(labels::Function::None));
  EXPECT_TRUE(model.score({{"posenc", "a"}}).allclose(logit.sigmoid().squeeze(1)));
  EXPECT_EQ(model.rank("posenc", {}).size(), 0U);
}

TEST(Reranker, PutsAPromptBeforeTheQuery) {
  const auto model = load_reranker(kFolders + "reranker");
  EXPECT_TRUE(bit_equal(model.score({{"posenc", "a"}}, RankOptions().prompt("the ")),
                        model.score({{"the posenc", "a"}})));
}

TEST(Reranker, Errors) {
  const auto model = load_reranker(kFolders + "reranker");
  EXPECT_ERROR(model.score({}, RankOptions().batch_size(0)), c10::ValueError,
               "[Reranker] batch_size must be positive. Got 0");
  EXPECT_ERROR(model.rank("a", {"b"}, RankOptions().top_k(0)), c10::ValueError,
               "[ranked_documents] top_k must be positive. Got 0");
  EXPECT_ERROR(model.score({}, RankOptions().prompt("a").prompt_name("b")), c10::ValueError,
               "[Reranker] prompt and prompt_name must not both be set");
  EXPECT_ERROR(model.score({}, RankOptions().prompt_name("b")), c10::ValueError,
               "[named_prompt] the name of a prompt must be one of the folder's");
  EXPECT_ERROR(load_reranker(kFolders + "emotions"), c10::ValueError,
               "a model that ranks must have one label. Got 3");
  EXPECT_ERROR(load_reranker(kFolders + "bert"), c10::ValueError,
               "must be a CrossEncoder, or a ...ForSequenceClassification or ...ForCausalLM alone");
}

// A causal language model with a LogitScore.
class CausalReranker : public ::testing::Test {
 protected:
  CausalReranker() {
    std::filesystem::copy(kStory, path_, std::filesystem::copy_options::recursive);
    write_bytes(path_ + "/config_sentence_transformers.json", R"({"model_type": "CrossEncoder"})");
    const std::string type = R"("type": "sentence_transformers.)";
    write_bytes(path_ + "/modules.json", R"([{"idx": 0, "name": "0", "path": "", )" + type +
                                             R"(models.Transformer"},
                    {"idx": 1, "name": "1", "path": "1_LogitScore", )" +
                                             type + R"(cross_encoder.modules.LogitScore"}])");
    std::filesystem::create_directory(path_ + "/1_LogitScore");
    write_bytes(path_ + "/1_LogitScore/config.json", kTokens);
    for (int i = 0; i < 23; ++i) {  // several of a length of two tokens or more beyond the query
      documents_.emplace_back();
      for (int j = 0; j <= i % 7; ++j) documents_.back() += j % 2 == i % 3 ? " cat" : " the end";
    }
  }
  // What the module computes of a pair alone.
  double alone(Decoder& model, const Tokenizer& tokenizer, const std::string& document) const {
    const auto ids = tokenizer.encode_ids(kQuery, document);
    const std::vector<int64_t> row(ids.begin(), ids.end());
    const auto logits = model->forward(torch::tensor(row, torch::kLong).unsqueeze(0)).logits[0][-1];
    return torch::sigmoid(logits[7] - logits[9]).item<double>();
  }

  static constexpr double kRounding = 5e-6;  // of logits of up to 20, whose sums have other orders
  static constexpr const char* kStory = POSENC_LIVE_DIR "/llama/story";
  static constexpr const char* kTokens = R"({"true_token_id": 7, "false_token_id": 9})";
  static constexpr const char* kQuery = "the cat sat on the mat and the dog sat on the cat";
  const TempDir folder_;
  const std::string path_ = folder_ / "model";
  std::vector<std::string> documents_;
};

TEST_F(CausalReranker, ScoresAreThoseOfEachPairAlone) {
  const torch::NoGradGuard no_grad;
  auto module = load_decoder(path_);
  freeze_folder(path_, folder_ / "frozen");
  for (const std::string& folder : {path_, folder_ / "frozen"}) {
    const Reranker model = load_reranker(folder);
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const std::string& document : documents_) {
      pairs.emplace_back(kQuery, document);
      pairs.emplace_back("a", document);  // a query between, whose pairs share little
    }
    for (const int64_t batch : {1, 5, 64}) {
      const auto scores = model.score(pairs, RankOptions().batch_size(batch));
      for (std::size_t i = 0; i < documents_.size(); ++i) {
        EXPECT_NEAR(scores[static_cast<int64_t>(2 * i)].item<double>(),
                    alone(module, model.tokenizer(), documents_[i]), kRounding)
            << folder << " " << batch << " " << documents_[i];
        EXPECT_NEAR(scores[static_cast<int64_t>(2 * i + 1)].item<double>(),
                    model.score({{"a", documents_[i]}})[0].item<double>(), kRounding);
      }
    }
    EXPECT_EQ(model.rank(kQuery, documents_).size(), documents_.size());
  }
}

TEST_F(CausalReranker, AFrozenFolderHasTheScoresOfItsDtype) {
  const auto int8 = FreezeOptions().weights(WeightDtype::Int8);
  freeze_folder(path_, folder_ / "frozen", int8);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& document : documents_) pairs.emplace_back(kQuery, document);
  const auto exact = load_reranker(path_).score(pairs),
             got = load_reranker(path_, int8).score(pairs),
             frozen = load_reranker(folder_ / "frozen").score(pairs);
  EXPECT_FALSE(bit_equal(got, exact));
  EXPECT_TRUE(got.allclose(exact, 0.0, 0.05));
  EXPECT_TRUE(frozen.allclose(got, 0.0, 0.02));  // whose output layer is in 8 bits, too
  freeze_folder(path_, folder_ / "encoder", {}, {}, /*with_head=*/false);
  EXPECT_ERROR(load_reranker(folder_ / "encoder"), WeightsError,
               "must be a frozen Decoder. Got one");
  EXPECT_ERROR(load_reranker(folder_ / "frozen", FreezeOptions().weights(WeightDtype::BFloat16)),
               c10::ValueError, "with which it was frozen, weights=Int8");
}

TEST_F(CausalReranker, TokensAreInTheVocabulary) {
  write_bytes(path_ + "/1_LogitScore/config.json", R"({"true_token_id": 100000})");
  EXPECT_ERROR(load_reranker(path_), c10::ValueError,
               "the tokens of a score must be in the vocabulary of");
}

TEST(Reranker, IsToldFromModelsOfVectors) {
  EXPECT_TRUE(is_reranker(kFolders + "reranker"));
  EXPECT_FALSE(is_reranker(kFolders + "bert"));
}

TEST(Reranker, IsPrinted) {
  std::ostringstream text;
  text << load_reranker(kFolders + "reranker");
  EXPECT_EQ(text.str(), "posenc::Reranker(causal=false, chat_template=false)");
}

}  // namespace
}  // namespace posenc::testing
