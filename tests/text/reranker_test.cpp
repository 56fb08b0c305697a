// Reranker's options and errors, and its order. What the scores are, tests/differential/rerank.py
// compares with sentence-transformers.
#include "posenc/text/reranker.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "posenc/text/text_classifier.h"
#include "support/compare.h"

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
