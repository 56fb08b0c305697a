// What split vocabularies send and allocate, counted by an engine in memory.

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "parallel/vocab_case.h"
#include "support/counting_backend.h"
#include "support/test_allocator.h"

namespace posenc {
namespace {

namespace F = posenc::functional;
using Steps = std::map<std::string, testing::Traffic>;

/// The traffic of each step of one process with `tokens` tokens.
Steps steps_of(const RankGroup& group, RankTokens how, int64_t tokens, int64_t width,
               int64_t vocab) {
  Steps steps;
  const auto step = [&](const char* name, const auto& work) {
    testing::reset_traffic(group);
    work();
    steps[name] = testing::traffic(group);
  };
  const VocabShard shard = VocabShard::of(vocab, group.rank(), group.size());
  const at::Tensor ids = at::arange(tokens) % vocab;
  const at::Tensor table = at::ones({shard.rows(), width}).requires_grad_();
  const at::Tensor hidden = at::ones({tokens, width}).requires_grad_();
  at::Tensor x, logits, loss;
  step("embedding forward", [&] {
    x = F::vocab_parallel_embedding(ids, table, shard, group,
                                    F::VocabParallelEmbeddingFuncOptions().tokens(how));
  });
  step("embedding backward", [&] { torch::autograd::grad({x.sum()}, {table}); });
  step("output forward", [&] { logits = F::vocab_parallel_output(hidden, table, {}, group, how); });
  step("output backward", [&] { torch::autograd::grad({logits.sum()}, {hidden, table}); });
  const at::Tensor leaf = logits.detach().requires_grad_();
  step("loss forward", [&] {
    loss = F::vocab_parallel_cross_entropy(
        leaf, ids, shard, group, F::TokenCrossEntropyFuncOptions().label_smoothing(0.1), how);
  });
  step("loss backward", [&] { torch::autograd::grad({loss}, {leaf}); });
  return steps;
}

double sent(const testing::Traffic& traffic) {
  double bytes = 0;
  for (const auto& item : traffic) bytes += item.second.sent;
  return bytes;
}

TEST(VocabParallelWire, ThreeFloatsATokenForTheLossAndDForEachEnd) {
  constexpr int64_t kTokens = 10, kWidth = 6;
  testing::run_counted_ranks(3, [](const RankGroup& group) {
    Steps steps = steps_of(group, RankTokens::Same, kTokens, kWidth, 43);
    EXPECT_EQ(steps["embedding forward"].size(), 1U);
    EXPECT_EQ(steps["embedding forward"]["all_reduce"].calls, 1);
    EXPECT_EQ(steps["embedding forward"]["all_reduce"].bytes, 4 * kTokens * kWidth);
    EXPECT_EQ(sent(steps["embedding backward"]), 0);
    EXPECT_EQ(sent(steps["output forward"]), 0);
    EXPECT_EQ(steps["output backward"].size(), 1U);
    EXPECT_EQ(steps["output backward"]["all_reduce"].calls, 1);
    EXPECT_EQ(steps["output backward"]["all_reduce"].bytes, 4 * kTokens * kWidth);
    EXPECT_EQ(steps["loss forward"].size(), 1U);
    EXPECT_EQ(steps["loss forward"]["all_gather"].calls, 1);
    EXPECT_EQ(steps["loss forward"]["all_gather"].bytes, 4 * kTokens * 3);
    EXPECT_EQ(sent(steps["loss backward"]), 0);
  });
}

// The numbers of wire.json are those of tools/distributed_doc.py, whose formulas make the tables of
// docs/developers/distributed.md.
TEST(VocabParallelWire, UpToSixteenProcessesSendWhatTheDocumentsSay) {
  std::ifstream file(std::string(POSENC_TESTS_DIR) + "/parallel/wire.json");
  const auto cases = nlohmann::json::parse(file);
  ASSERT_FALSE(cases.empty());
  for (const auto& wire : cases) {
    const auto how = wire["rank_tokens"] == "Own" ? RankTokens::Own : RankTokens::Same;
    testing::run_counted_ranks(wire["ranks"].get<int>(), [&](const RankGroup& group) {
      const Steps steps = steps_of(group, how, wire["tokens"].get<int64_t>(),
                                   wire["width"].get<int64_t>(), wire["vocab"].get<int64_t>());
      ASSERT_EQ(steps.size(), wire["sent"].size());
      for (const auto& [name, traffic] : steps)
        EXPECT_DOUBLE_EQ(sent(traffic), wire["sent"][name].get<double>())
            << wire << " " << name << " of rank " << group.rank();
    });
  }
}

// No process allocates more than its columns of the logits, in their type.
TEST(VocabParallelWire, TheLargestAllocationIsTheShardsLogits) {
  constexpr int64_t kTokens = 2048, kVocab = 4000, kRanks = 4;
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const int64_t bytes = kTokens * kVocab / kRanks * static_cast<int64_t>(c10::elementSize(type));
    const testing::TestAllocator allocator;
    testing::run_counted_ranks(kRanks, [&](const RankGroup& group) {
      const VocabShard shard = VocabShard::of(kVocab, group.rank(), kRanks);
      const at::Tensor ids = at::arange(kTokens);
      const at::Tensor table = at::ones({shard.rows(), 8}, type).requires_grad_();
      const at::Tensor x = F::vocab_parallel_embedding(ids, table, shard, group);
      const at::Tensor logits = F::vocab_parallel_output(x, table, {}, group);
      F::vocab_parallel_cross_entropy(logits, ids, shard, group,
                                      F::TokenCrossEntropyFuncOptions().label_smoothing(0.1))
          .backward();
      EXPECT_TRUE(table.grad().defined());
    });
    EXPECT_EQ(static_cast<int64_t>(allocator.most()), bytes) << type;
  }
}

}  // namespace
}  // namespace posenc
