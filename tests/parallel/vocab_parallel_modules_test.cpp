// Modules whose vocabulary is split, compared with the same modules of one process.

#include <gtest/gtest.h>

#include <mutex>
#include <sstream>

#include "models/tiny.h"
#include "parallel/vocab_case.h"
#include "posenc/core/skip_init.h"
#include "posenc/inference/freeze.h"
#include "posenc/models/generate.h"
#include "posenc/nn/token_embedding.h"
#include "support/default_dtype.h"
#include "support/rank_threads.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::Op;
using testing::within;

namespace F = posenc::functional;

// Ranks are threads, which share the default generator: each makes its module alone.
template <typename Make>
auto made_alone(uint64_t seed, const Make& make) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  torch::manual_seed(seed);
  return make();
}

at::Tensor rows_of(const at::Tensor& whole, const RankGroup& group) {
  const VocabShard shard = VocabShard::of(whole.size(0), group.rank(), group.size());
  return whole.narrow(0, shard.first, shard.rows());
}

TokenEmbeddingOptions embedding_options(int64_t vocab) {
  return TokenEmbeddingOptions(vocab, 5).padding_idx(2).scale(Scale::SqrtDim);
}

// 9,001 rows are more than a block, and neither they nor their elements a multiple of 16.
TEST(VocabParallelModules, InitialWeightsAreTheRowsOfTheWhole) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    const testing::DefaultDtype dtype(type);
    for (const int64_t vocab : {9001, 4096, 43, 3}) {
      SCOPED_TRACE(c10::str(type, " ", vocab));
      torch::manual_seed(7);
      TokenEmbedding tokens(embedding_options(vocab));
      OutputProjection output(5, vocab);
      const at::Tensor next = at::randn({3});
      testing::run_ranks(4, [&](const RankGroup& group) {
        made_alone(7, [&] {
          TokenEmbedding own(embedding_options(vocab).group(group));
          OutputProjection projection(5, vocab, group);
          EXPECT_TRUE(bit_equal(at::randn({3}), next));
          EXPECT_TRUE(bit_equal(own->embedding->weight, rows_of(tokens->embedding->weight, group)));
          EXPECT_TRUE(bit_equal(projection->weight, rows_of(output->weight, group)));
          EXPECT_TRUE(bit_equal(projection->bias, rows_of(output->bias, group)));
          EXPECT_TRUE(own->embedding->weight.requires_grad());
          own->embedding->weight.detach().zero_();
          torch::manual_seed(7);
          own->reset_parameters();
          EXPECT_TRUE(bit_equal(own->embedding->weight, rows_of(tokens->embedding->weight, group)));
          return 0;
        });
      });
    }
  }
}

TEST(VocabParallelModules, SkipInitDrawsNothing) {
  testing::run_ranks(2, [](const RankGroup& group) {
    made_alone(7, [&] {
      const SkipInit skip;
      const at::Tensor before = at::randn({2});
      torch::manual_seed(7);
      TokenEmbedding tokens(embedding_options(43).group(group));
      OutputProjection output(5, 43, group);
      EXPECT_TRUE(bit_equal(at::randn({2}), before));
      return 0;
    });
  });
}

TEST(VocabParallelModules, NamesAreThoseOfTheWholeWithTheirRows) {
  testing::run_ranks(3, [](const RankGroup& group) {
    const int64_t first = VocabShard::of(7, group.rank(), 3).first;
    const auto check = [&](const std::vector<ShardedName>& found,
                           const std::vector<std::string>& names) {
      ASSERT_EQ(found.size(), names.size());
      for (size_t i = 0; i < names.size(); ++i) {
        EXPECT_EQ(found[i].name, names[i]);
        EXPECT_EQ(found[i].first, first);
        EXPECT_EQ(found[i].rows, 7);
      }
    };
    TokenEmbedding tokens(TokenEmbeddingOptions(7, 4).group(group));
    check(tokens->sharded_names(), {"embedding.weight"});
    EXPECT_TRUE(tokens->named_parameters().contains("embedding.weight"));
    TokenAndPositionEmbedding embed(TokenAndPositionEmbeddingOptions(7, 4).group(group));
    check(embed->sharded_names(), {"token_embedding.weight"});
    OutputProjection output(4, 7, group);
    check(output->sharded_names(), {"bias", "weight"});
    output->tie(tokens->embedding);
    check(output->sharded_names(), {"bias"});
    embed->share_tokens(tokens->embedding);
    check(embed->sharded_names(), {});
    EXPECT_TRUE(TokenEmbedding(7, 4)->sharded_names().empty());
    EXPECT_TRUE(OutputProjection(4, 7)->sharded_names().empty());
  });
}

TEST(VocabParallelModules, PrintTheirRank) {
  testing::run_ranks(2, [](const RankGroup& group) {
    const auto print = [](const torch::nn::Module& module) {
      std::ostringstream text;
      module.pretty_print(text);
      return text.str();
    };
    const std::string rank = c10::str(", rank=", group.rank(), ", ranks=2");
    EXPECT_EQ(print(*TokenEmbedding(TokenEmbeddingOptions(7, 4).group(group))),
              "posenc::TokenEmbedding(vocab_size=7, d_model=4" + rank + ")");
    EXPECT_EQ(print(*OutputProjection(4, 7, group, RankTokens::Own)),
              "posenc::OutputProjection(d_model=4, vocab_size=7" + rank + ", rank_tokens=Own)");
    EXPECT_PRED_FORMAT2(
        ::testing::IsSubstring, rank + ", dropout=",
        print(*TokenAndPositionEmbedding(TokenAndPositionEmbeddingOptions(7, 4).group(group))));
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, rank + ")",
                        print(*Transformer(testing::tiny().group(group))));
  });
}

TEST(VocabParallelModules, EmbeddingsHaveTheBitsOfTheWhole) {
  const auto base = [] { return TokenAndPositionEmbeddingOptions(9, 8, 6).dropout(0.0); };
  struct Case {
    TokenAndPositionEmbeddingOptions options;
    at::Tensor position_ids;
    at::ScalarType type = at::kFloat;
  };
  const std::vector<Case> cases = {
      {base(), {}},
      {base(), at::tensor({5, 0, 1}, at::kLong)},
      {base().padding_idx(2).batch_first(false), {}},
      {base().grow(true), at::tensor({1, 20, 3}, at::kLong)},
      {base().table_source(TableSource::Factored), at::tensor({1, 200, 3}, at::kLong)},
      {base().table_source(TableSource::OnTheFly), {}},
      {base().sinusoid(SinusoidOptions(8).precision(Precision::Exact)), {}, at::kBFloat16},
      {base(), {}, at::kBFloat16},
      {base().sparse(true).reuse_output(true), {}},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    const auto& c = cases[i];
    const auto axes = [&](const at::Tensor& ids) {
      return c.options.batch_first() ? ids : ids.t().contiguous();
    };
    const at::Tensor ids = axes(at::tensor({8, 2, 0, 4, 4, 5}, at::kLong).view({2, 3}));
    torch::manual_seed(3);
    TokenAndPositionEmbedding whole(c.options);
    whole->to(c.type);
    const at::Tensor expected = whole->forward(ids, 0, c.position_ids);
    const at::Tensor cotangent = at::randn_like(expected);
    expected.backward(cotangent);
    const auto dense = [](const at::Tensor& t) { return t.is_sparse() ? t.to_dense() : t; };
    testing::run_ranks(2, [&](const RankGroup& group) {
      auto own = made_alone(3, [&] {
        return TokenAndPositionEmbedding(TokenAndPositionEmbeddingOptions(c.options).group(group));
      });
      own->to(c.type);
      const at::Tensor x = own->forward(ids, 0, c.position_ids);
      EXPECT_TRUE(bit_equal(x, expected));
      x.backward(cotangent);
      EXPECT_TRUE(within(Op::Gradient, dense(own->token_embedding->weight.grad()),
                         rows_of(dense(whole->token_embedding->weight.grad()), group)));
    });
  }
}

struct TransformerRun {
  at::Tensor loss;
  std::map<std::string, at::Tensor> gradients;
};

TransformerRun run_transformer(TransformerImpl& model, const at::Tensor& src, const at::Tensor& tgt,
                               const at::Tensor& labels) {
  const RankGroup& group = model.options.group();
  const int64_t vocab = model.options.tgt_vocab();
  const at::Tensor logits = model.forward(src, tgt, {}, AttentionMask::causal());
  const at::Tensor loss = F::vocab_parallel_cross_entropy(
      logits, labels, VocabShard::of(vocab, group.rank(), group.size()), group,
      F::TokenCrossEntropyFuncOptions().label_smoothing(0.1).ignore_index(1),
      model.options.rank_tokens());
  loss.backward();
  TransformerRun run{loss.detach(), {}};
  for (const auto& item : model.named_parameters()) run.gradients[item.key()] = item.value().grad();
  return run;
}

bool is_split(const std::string& name) {
  return name.find("token_embedding.weight") != std::string::npos ||
         name.find("final_layer.") != std::string::npos;
}

// With Own, rank r has the sequences [begin[r], begin[r + 1]): the last rank has none.
class SplitTransformer : public ::testing::TestWithParam<std::tuple<Tying, int, RankTokens>> {};
INSTANTIATE_TEST_SUITE_P(All, SplitTransformer,
                         ::testing::Combine(::testing::ValuesIn(testing::kTyings),
                                            ::testing::Values(1, 2, 3),
                                            ::testing::Values(RankTokens::Same, RankTokens::Own)));

TEST_P(SplitTransformer, TrainsAsOneProcess) {
  const auto [tying, ranks, tokens] = GetParam();
  const testing::DefaultDtype dtype(at::kDouble);
  const at::Tensor src = at::randint(9, {3, 5}, at::kLong), tgt = at::randint(9, {3, 4}, at::kLong);
  const at::Tensor labels = at::randint(9, {3, 4}, at::kLong);
  torch::manual_seed(5);
  Transformer whole(testing::tiny(tying));
  const TransformerRun expected = run_transformer(*whole, src, tgt, labels);
  std::vector<TransformerRun> found(ranks);
  testing::run_ranks(ranks, [&, tying = tying, ranks = ranks,
                             tokens = tokens](const RankGroup& group) {
    auto model = made_alone(5, [&] {
      Transformer original(testing::tiny(tying).group(group).rank_tokens(tokens));
      if (group.rank() != 0) return original;
      // A clone, which draws as well, stays tied and in its group.
      return Transformer(std::dynamic_pointer_cast<TransformerImpl>(original->clone()));
    });
    const int64_t busy = std::max(1, ranks - 1);
    const auto begin = [&](int64_t r) { return std::min<int64_t>(3, r >= busy ? 3 : r * 2); };
    const auto mine = [&](const at::Tensor& t) {
      return tokens == RankTokens::Same ? t
                                        : t.slice(0, begin(group.rank()), begin(group.rank() + 1));
    };
    found[group.rank()] = run_transformer(*model, mine(src), mine(tgt), mine(labels));
  });
  ASSERT_EQ(found[0].gradients.size(), expected.gradients.size());
  for (const auto& run : found) {
    EXPECT_TRUE(bit_equal(run.loss, found[0].loss));
    EXPECT_TRUE(within(Op::Layers, run.loss, expected.loss));
  }
  for (const auto& [name, gradient] : expected.gradients) {
    std::vector<at::Tensor> parts;
    for (const auto& run : found) parts.push_back(run.gradients.at(name));
    const at::Tensor sum = is_split(name)              ? at::cat(parts)
                           : tokens == RankTokens::Own ? at::stack(parts).sum(0)
                                                       : parts[0];
    EXPECT_TRUE(within(Op::Layers, sum, gradient)) << name;
  }
}

TEST(VocabParallelModules, LogitsAreTheColumnsOfThisProcess) {
  torch::manual_seed(5);
  Transformer whole(testing::tiny());
  const at::Tensor ids = at::arange(6).view({2, 3});
  const at::Tensor expected = whole->forward(ids, ids);
  testing::run_ranks(2, [&](const RankGroup& group) {
    auto model = made_alone(5, [&] { return Transformer(testing::tiny().group(group)); });
    const at::Tensor columns = rows_of(expected.movedim(-1, 0), group).movedim(0, -1);
    EXPECT_TRUE(within(Op::Layers, model->forward(ids, ids), columns));
    EXPECT_TRUE(within(Op::Layers, model->decode(ids, model->encode(ids)), columns));
  });
}

TEST(VocabParallelModulesErrors, SharedTablesAndWeightsOfOtherRows) {
  testing::run_ranks(2, [](const RankGroup& group) {
    const torch::nn::Embedding whole(7, 4);
    OutputProjection output(4, 7, group);
    EXPECT_ERROR(output->tie(whole), c10::ValueError, "the embedding must be (");
    TokenAndPositionEmbedding embed(TokenAndPositionEmbeddingOptions(7, 4).group(group));
    EXPECT_ERROR(embed->share_tokens(whole), c10::ValueError,
                 "shared tokens must be (vocab_size, d_model), this process's rows of it, = [");
    const auto options = TokenEmbeddingOptions(7, 4).group(group);
    EXPECT_THROW(TokenEmbedding(std::make_shared<TokenEmbeddingImpl>(options, at::ones({7, 4}))),
                 c10::Error);
    const at::Tensor own = rows_of(at::arange(28.0).view({7, 4}), group);
    TokenEmbedding given(std::make_shared<TokenEmbeddingImpl>(options, own));
    EXPECT_TRUE(bit_equal(given->forward(at::tensor({6, 0}, at::kLong)),
                          at::tensor({24.f, 25.f, 26.f, 27.f, 0.f, 1.f, 2.f, 3.f}).view({2, 4})));
  });
}

TEST(VocabParallelModulesErrors, WhatNeedsTheWholeVocabulary) {
  testing::run_ranks(2, [](const RankGroup& group) {
    Transformer model(testing::tiny().group(group));
    model->eval();
    const at::Tensor ids = at::zeros({1, 2}, at::kLong);
    const std::string rule =
        "the vocabulary must not be split over processes: save the weights, "
        "and load them into a model without a group. Got a group of 2";
    EXPECT_ERROR(generate(model, ids, {}, GenerateOptions(0, 1)), c10::ValueError,
                 "[generate] " + rule);
    EXPECT_ERROR(freeze(model), c10::ValueError, "[freeze] " + rule);
    EXPECT_ERROR(model->start(at::zeros({1, 2, 8}), 4), c10::ValueError, "[Transformer] " + rule);
    DecoderCache cache;
    EXPECT_ERROR(model->step(ids, cache), c10::ValueError, "[Transformer] " + rule);
  });
}

// Found before anything is sent, so that the others hear of it and the group stays usable.
TEST(VocabParallelModulesErrors, AnotherProcessHasASequenceThatIsTooLong) {
  testing::run_ranks(2, [](const RankGroup& group) {
    TokenAndPositionEmbedding embed(
        TokenAndPositionEmbeddingOptions(7, 4, 3).dropout(0.0).group(group).rank_tokens(
            RankTokens::Own));
    const at::Tensor ids = at::zeros({1, 2 + 2 * group.rank()}, at::kLong);
    if (group.rank() == 1) {
      EXPECT_ERROR(embed->forward(ids), c10::ValueError, "sequence length 4 exceeds max_len 3");
    } else {
      for (int times = 0; times < 2; ++times) {  // as EXPECT_ERROR runs its statement twice
        try {
          embed->forward(ids);
          ADD_FAILURE() << "no error";
        } catch (const GroupError& error) {
          EXPECT_EQ(error.code(), GroupErrorCode::PeerFailed);
        }
      }
    }
    EXPECT_NO_THROW(embed->forward(ids.narrow(1, 0, 2)));
  });
}

}  // namespace
}  // namespace posenc
