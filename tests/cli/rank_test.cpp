// posenc similarity, posenc rank and posenc encode --precision: what they refuse. What they
// compute, tests/differential/rerank.py compares with sentence-transformers.
#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "posenc/models/functional/quantize.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

const std::string kFolders = POSENC_LIVE_DIR "/encoder/";

class Similarity : public InFolder {
 protected:
  Result of(const StateDict& a, const StateDict& b, const std::string& name = "") const {
    std::vector<std::string> arguments = {"similarity", safetensors("a", a), safetensors("b", b),
                                          "--out", file("out")};
    if (!name.empty()) arguments.insert(arguments.end(), {"--similarity", name});
    return posenc(arguments);
  }
  void refuses(const StateDict& a, const StateDict& b, const std::string& name,
               const std::string& why) const {
    expect_refused(of(a, b, name), "similarity", why);
    EXPECT_EQ(names(), (std::vector<std::string>{"a", "b"}));
  }
};

StateDict dense(const at::Tensor& rows) { return dict({{"embeddings", rows}}); }

StateDict sparse(const std::vector<int64_t>& crow, const std::vector<int64_t>& col,
                 int64_t width = 3) {
  return dict({{"crow_indices", torch::tensor(crow)},
               {"col_indices", torch::tensor(col)},
               {"values", torch::ones({static_cast<int64_t>(col.size())})},
               {"size", torch::tensor({static_cast<int64_t>(crow.size()) - 1, width})}});
}

TEST_F(Similarity, HasADefaultForEachKind) {
  const auto scores = [&] { return load_safetensors(file("out")).tensors["scores"]; };
  const auto rows = torch::tensor({{3.0F, 4.0F, 0.0F}, {0.0F, 2.0F, 0.0F}});
  EXPECT_EQ(of(dense(rows), dense(rows)).status, 0);
  EXPECT_TRUE(scores().allclose(torch::tensor({{1.0F, 0.8F}, {0.8F, 1.0F}})));
  EXPECT_EQ(of(sparse({0, 2, 3}, {0, 2, 1}), sparse({0, 3}, {0, 1, 2})).status, 0);
  EXPECT_TRUE(scores().allclose(torch::tensor({{2.0F}, {1.0F}})));
  const auto bits = functional::pack_bits(rows);
  EXPECT_EQ(of(dense(bits), dense(bits)).status, 0);
  EXPECT_TRUE(scores().allclose(torch::tensor({{0.0F, -1.0F}, {-1.0F, 0.0F}})));
}

TEST_F(Similarity, TakesLevelsAsNumbers) {
  const auto levels = torch::tensor({{3, -4}}, torch::kChar);
  const StateDict stored = dict({{"embeddings", levels}, {"ranges", torch::zeros({2, 2})}});
  EXPECT_EQ(of(dense(torch::tensor({{1.0F, 0.5F}})), stored, "dot").status, 0);
  EXPECT_EQ(load_safetensors(file("out")).tensors["scores"].item<float>(), 1.0F);
}

TEST_F(Similarity, RefusesWhatIsNoVectors) {
  const StateDict rows = dense(torch::ones({2, 3}));
  refuses(rows, rows, "cosin", "Got cosin; did you mean cosine?");
  refuses(rows, dense(torch::ones({2, 4})), "dot", "must have one width. Got 3 and 4");
  refuses(rows, dense(torch::ones({2, 3}, torch::kByte)), "dot",
          "must be of one kind. Got a vector for each text and bits");
  refuses(rows, dense(torch::ones({3})), "dot", "`embeddings` must be (N, D). Got (3)");
  refuses(rows, dense(torch::ones({2, 3}, torch::kLong)), "dot",
          "`embeddings` must be float32, int8 or uint8. Got int64");
  refuses(rows, dict({{"vectors", torch::ones({2, 3})}}), "dot", "vectors");
  refuses(rows, rows, "hamming", "hamming is not a similarity of a vector for each text");
}

TEST_F(Similarity, RefusesLengthsThatDoNotAddUp) {
  const auto tokens = [](const std::vector<int64_t>& lengths) {
    return dict({{"embeddings", torch::ones({5, 3})}, {"lengths", torch::tensor(lengths)}});
  };
  refuses(tokens({2, 3}), tokens({2, 2}), "dot",
          "`lengths` must add up to the number of rows of `embeddings`, 5. Got 4");
  refuses(tokens({6, -1}), tokens({2, 3}), "dot", "`lengths` must not be negative");
  refuses(tokens({2, 3}), tokens({5}), "cosine", "cosine is not a similarity of vectors of tokens");
}

TEST_F(Similarity, RefusesSparseVectorsThatAreNone) {
  const StateDict good = sparse({0, 2, 3}, {0, 2, 1});
  refuses(good, sparse({0, 2, 1}, {0, 2, 1}), "dot", "crow_indices must go from 0 to the number");
  refuses(good, sparse({0, 2, 1, 3}, {0, 2, 1}), "dot", "crow_indices must ascend");
  refuses(good, sparse({0, 2, 3}, {0, 3, 1}), "dot", "Got 3 after 0 in row 0");
  refuses(good, sparse({0, 2, 3}, {1, 1, 1}), "dot", "Got 1 after 1 in row 0");
  refuses(good, sparse({0, 2, 3}, {0, 2, 1}, 4), "dot", "must have one width. Got 3 and 4");
  StateDict other = good;
  other.erase("size");
  other.insert("size", torch::tensor({3, 3}));
  refuses(good, other, "dot", "`size` must be the number of vectors, 2, and their width");
  other = good;
  other.erase("values");
  other.insert("values", torch::ones({3}, torch::kDouble));
  refuses(good, other, "dot", "`values` must be float32 with 1 axis. Got float64 (3)");
}

class Rank : public InFolder {
 protected:
  Result rank(const std::string& model, const std::vector<std::string>& options) const {
    std::vector<std::string> arguments = {"rank", kFolders + model, "--text",
                                          text_file("documents", "the library\nposenc\na\n")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return posenc(arguments);
  }
};

TEST_F(Rank, WritesALineForEachQuery) {
  const auto result =
      rank("reranker", {"--queries", text_file("queries", "posenc\nthe\n"), "--top", "2"});
  ASSERT_EQ(result.status, 0) << result.err;
  std::istringstream lines(result.out);
  int64_t query = 0;
  for (std::string line; std::getline(lines, line); ++query) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json.at("query"), query);
    EXPECT_EQ(json.at("results").size(), 2U);
    EXPECT_GE(json.at("results")[0].at("score"), json.at("results")[1].at("score"));
  }
  EXPECT_EQ(query, 2);
}

TEST_F(Rank, RefusesOtherModelsAndOptions) {
  expect_refused(rank("emotions", {"--query", "a"}), "rank", "must have one label. Got 3");
  expect_refused(rank("reranker", {"--query", "a", "--similarity", "dot"}), "rank",
                 "--similarity is for models that make vectors");
  expect_refused(rank("bert", {"--query", "a", "--similarity", "dots"}), "rank",
                 "Got dots; did you mean dot?");
  expect_refused(rank("bert", {"--query", "a", "--similarity", "hamming"}), "rank",
                 "hamming is not a similarity of a vector for each text");
  expect_refused(rank("reranker", {"--query", "a", "--prompt", "no"}), "rank",
                 "the name of a prompt must be one of the folder's");
  expect_refused(rank("reranker", {"--queries", text_file("queries", "\xff\nposenc\n")}), "rank",
                 "line 1");
  EXPECT_EQ(rank("reranker", {}).status, 2);
}

class WrittenPrecision : public InFolder {
 protected:
  Result encode(const std::string& lines, const std::vector<std::string>& options,
                const std::string& out = "out") const {
    std::vector<std::string> arguments = {
        "encode", kFolders + "bert", "--text", text_file("lines", lines), "--out", file(out)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return posenc(arguments);
  }
};

TEST_F(WrittenPrecision, RangesOfTheCorpusAreThoseOfQueries) {
  ASSERT_EQ(encode("posenc\nthe library\n", {"--precision", "int8"}, "corpus").status, 0);
  const auto corpus = load_safetensors(file("corpus")).tensors;
  EXPECT_EQ(corpus["embeddings"].scalar_type(), torch::kChar);
  const auto result = encode("a\n", {"--precision", "uint8", "--ranges", file("corpus")});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto query = load_safetensors(file("out")).tensors;
  EXPECT_EQ(query["embeddings"].scalar_type(), torch::kByte);
  EXPECT_TRUE(bit_equal(query["ranges"], corpus["ranges"]));
}

TEST_F(WrittenPrecision, RefusesRangesThatDoNotFit) {
  const auto refuses = [&](const std::vector<std::string>& options, const std::string& why) {
    expect_refused(encode("a\n", options), "encode", why);
    EXPECT_FALSE(std::filesystem::exists(file("out")));
  };
  refuses({"--precision", "int8"}, "ranges must be those of two vectors or more");
  const auto other = safetensors("ranges", dict({{"ranges", torch::ones({2, 3})}}));
  refuses({"--precision", "int8", "--ranges", other},
          "ranges must be (2, D) = (2, 16). Got [2, 3]");
  refuses({"--precision", "binary", "--ranges", other}, "bits have no ranges");
  const auto none = safetensors("none", dict({{"embeddings", torch::ones({2, 3})}}));
  refuses({"--precision", "int8", "--ranges", none}, "must have a tensor `ranges`");
}

}  // namespace
}  // namespace posenc::testing
