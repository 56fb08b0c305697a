// Stages of sparse vectors as modules that are trained. tests/differential/sparse.py compares what
// they compute with sentence-transformers.

#include <gtest/gtest.h>

#include <cmath>

#include "models/encoder/stages_folder.h"
#include "posenc/models/sentence_folder.h"
#include "support/compare.h"
#include "support/seed.h"

namespace posenc::testing {
namespace {

using sentence::SpladeStrategy;

SentenceStages stages_of(int64_t width, std::vector<sentence::Stage> stages,
                         bool takes_sentences = false) {
  return SentenceStages(
      SentenceStagesOptions(width).stages(std::move(stages)).takes_sentences(takes_sentences));
}

TEST(SpladePooling, SendsItsGradientToTheLargest) {
  auto stages = stages_of(2, {sentence::SpladePooling{}});
  const auto logits =
      torch::tensor({{{1.0F, -1.0F}, {3.0F, -2.0F}, {9.0F, 9.0F}}}).requires_grad_(true);
  const auto mask = torch::tensor({{1, 1, 0}});
  const auto vectors = stages->forward(logits, mask);
  EXPECT_TRUE(vectors.allclose(torch::tensor({{std::log1p(3.0F), 0.0F}})));
  vectors.sum().backward();
  EXPECT_TRUE(logits.grad().allclose(torch::tensor({{{0.0F, 0.0F}, {0.25F, 0.0F}, {0.0F, 0.0F}}})));
}

TEST(SpladePooling, OfTwoLogsIsNotOfOne) {
  const auto logits = torch::randn({2, 5, 7});
  for (const int64_t logs : {1, 2}) {
    auto z = logits.relu().log1p();
    if (logs == 2) z = z.log1p();
    auto sum = stages_of(7, {sentence::SpladePooling{SpladeStrategy::Sum, logs}});
    auto max = stages_of(7, {sentence::SpladePooling{SpladeStrategy::Max, logs}});
    EXPECT_TRUE(sum->forward(logits).allclose(z.sum(1)));
    EXPECT_TRUE(max->forward(logits).allclose(std::get<0>(z.max(1))));
  }
  EXPECT_ERROR(stages_of(7, {sentence::SpladePooling{SpladeStrategy::Max, 3}}), c10::ValueError,
               "logs must be 1 or 2. Got 3");
}

// The deviation is of n - 1, and the largest are those with their signs.
TEST(SparseAutoEncoder, KeepsTheLargestOfAllEntries) {
  torch::manual_seed(testing::seed(81));
  for (const bool normalize : {false, true}) {
    auto stages = stages_of(6, {sentence::SparseAutoEncoder{6, 20, 5, normalize}}, true);
    const torch::NoGradGuard no_grad;
    for (auto& parameter : stages->named_parameters()) parameter.value().normal_();
    auto p = stages->named_parameters();
    const auto given = torch::randn({3, 6});
    auto x = given;
    if (normalize) {
      x = x - x.mean(-1, true);
      x = x / (x.square().sum(-1, true).div(5.0).sqrt() + 1e-5);
    }
    const auto z = (x - p["1.pre_bias"]).matmul(p["1.encoder.weight"].t()) + p["1.latent_bias"];
    const auto expected = [&](int64_t k) {
      const auto least = std::get<0>(z.topk(k, -1)).select(1, k - 1).unsqueeze(1);
      return torch::where(z.ge(least), z.relu(), torch::zeros_like(z));
    };
    EXPECT_TRUE(stages->forward(given).allclose(expected(5), 1e-5, 1e-5)) << normalize;
    EXPECT_TRUE(stages->forward(given, {}, 0, {}, {}, 12).allclose(expected(12), 1e-5, 1e-5));
    EXPECT_ERROR(stages->forward(given, {}, 0, {}, {}, 21), c10::ValueError,
                 "k, or max_active_dims in its place, must be at most hidden_dim, 20. Got 21");
    EXPECT_ERROR(stages->forward(given, {}, 0, {}, {}, 0), c10::ValueError,
                 "max_active_dims must be positive. Got 0");
  }
}

TEST(SparseAutoEncoder, IsClonedAndLoadedByEitherName) {
  auto stages = stages_of(6, {sentence::SparseAutoEncoder{6, 20, 5}}, true);
  const auto copy = std::dynamic_pointer_cast<SentenceStagesImpl>(stages->clone());
  const auto x = torch::randn({2, 6});
  EXPECT_TRUE(bit_equal(copy->forward(x), stages->forward(x)));
  StagesFolder folder;
  folder.add("Pooling", "1", {{"pooling_mode_mean_tokens", true}});
  folder.add("SparseAutoEncoder", "2", {{"input_dim", 8}, {"hidden_dim", 20}, {"k", 3}});
  folder.put("config_sentence_transformers.json", {{"model_type", "SparseEncoder"}});
  StateDict tensors;
  tensors.insert("pre_bias", torch::randn({8}));
  tensors.insert("latent_bias", torch::randn({20}));
  tensors.insert("stats_last_nonzero", torch::zeros({20}, torch::kLong));
  tensors.insert("decoder.linear.weight", torch::randn({20, 8}));
  const std::string file = folder.write() + "/2/model.safetensors";
  for (const bool has_both : {false, true}) {
    if (has_both) tensors.insert("encoder.weight", tensors["decoder.linear.weight"].clone());
    save_safetensors(file, tensors);
    const auto loaded = load_sentence_stages(folder.write());
    EXPECT_TRUE(bit_equal(loaded->named_parameters()["2.encoder.weight"],
                          tensors["decoder.linear.weight"]));
  }
  tensors.erase("latent_bias");
  save_safetensors(file, tensors);
  EXPECT_ERROR(load_sentence_stages(folder.write()), WeightsError, "latent_bias");
  folder.put("2/config.json", {{"input_dim", 8}, {"hidden_dim", 21}});
  tensors.insert("latent_bias", torch::randn({20}));
  save_safetensors(file, tensors);
  EXPECT_ERROR(load_sentence_stages(folder.write()), WeightsError, "must have shape (21, 8)");
}

TEST(SparseStaticEmbedding, IsOfIdsAlone) {
  auto stages = stages_of(0, {sentence::SparseStaticEmbedding{6}});
  const auto weight = stages->named_parameters()["1.weight"];
  {
    const torch::NoGradGuard no_grad;
    weight.copy_(torch::arange(1, 7));
  }
  const auto ids = torch::tensor({{3, 3, 1}, {0, 5, 5}}),
             mask = torch::tensor({{1, 1, 1}, {1, 0, 0}});
  const auto vectors = stages->forward({}, mask, 0, ids);
  EXPECT_TRUE(vectors.equal(
      torch::tensor({{0.0F, 2.0F, 0.0F, 4.0F, 0.0F, 0.0F}, {1.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F}})));
  vectors.sum().backward();
  EXPECT_TRUE(weight.grad().equal(torch::tensor({1.0F, 1.0F, 0.0F, 1.0F, 0.0F, 0.0F})));
  EXPECT_ERROR(stages->forward({}, mask, 0, ids + 1), c10::ValueError,
               "input_ids must be from 0 to 5");
  EXPECT_ERROR(stages->forward({}, mask), c10::ValueError, "needs input_ids");
  auto after = stages_of(6, {sentence::SparseStaticEmbedding{6}}, true);
  const auto sentences = torch::randn({2, 6});
  EXPECT_TRUE(
      after->forward(sentences, mask, 0, ids).equal(sentences * vectors.ne(0).to(torch::kFloat)));
}

}  // namespace
}  // namespace posenc::testing
