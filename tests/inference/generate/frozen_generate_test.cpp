// generate() of a frozen model against generate() of the model: the same tokens and scores for
// every search, in whatever order sequences end.

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "inference/models.h"
#include "posenc/inference/freeze.h"
#include "support/compare.h"
#include "support/search_reference.h"
#include "support/seed.h"
#include "support/test_allocator.h"
#include "support/threads.h"

namespace posenc::testing {
namespace {

GenerateOptions any_options(Dice& dice) {
  auto options = GenerateOptions(kBegin, kEnd).max_new_tokens(dice(1, 20));
  if (dice.coin()) options.eos_ids({kEnd, 5, 7, 11});
  if (dice.coin()) options.suppress_tokens({kPad, 6});
  if (dice.coin()) options.forced_eos_ids({kEnd});
  if (dice.coin()) options.renormalize(true);
  if (dice.coin()) {
    options.num_beams(dice(2, 5)).num_return_sequences(dice(1, 2));
    options.early_stopping(static_cast<EarlyStopping>(dice(0, 2)));
  }
  options.length_penalty(dice.coin() ? 1.0 : 0.6);
  return options;
}

TEST(FrozenGenerate, FindsWhatTheModelFinds) {
  Dice dice(1);
  std::set<size_t> lengths;
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    auto model = any_model(dice, seed);
    const auto frozen = freeze(model, FreezeOptions().gemm(GemmBackend::Native));
    const auto src = any_ids(dice, dice(1, 12), dice(1, 20), dice.coin());
    const auto mask = dice.coin() ? AttentionMask::padding(src, kPad) : AttentionMask();
    const auto options = any_options(dice);
    const auto got = generate(frozen, src, mask, options);
    SearchReference reference(model, src, mask, options, Op::Scores);
    EXPECT_TRUE(found_the_same(got, generate(*model, src, mask, options), reference));
    for (const auto& one : got) lengths.insert(one[0].tokens.size());
  }
  EXPECT_GT(lengths.size(), 8u) << "searches that all end at once would prove little";
}

// A hundred rows of different sources, which finish one by one.
TEST(FrozenGenerate, ManyRows) {
  Dice dice(8);
  std::set<size_t> lengths;
  // Three models, or more if all targets of these end at the same token.
  for (unsigned seed = 0; seed < 3 || (lengths.size() == 1 && seed < 20); ++seed) {
    auto model = any_model(dice, seed);
    const auto frozen = freeze(model);
    const auto src = any_ids(dice, 50, 12, true);
    const auto mask = AttentionMask::padding(src, kPad);
    for (const int64_t beams : {1, 2}) {
      auto options = GenerateOptions(kBegin, kEnd)
                         .max_new_tokens(14)
                         .num_beams(beams)
                         .num_return_sequences(beams);
      options.eos_ids({kEnd, 5, 7, 11}).early_stopping(EarlyStopping::WhenFull);
      SearchReference reference(model, src, mask, options, Op::Scores);
      const auto got = generate(frozen, src, mask, options);
      EXPECT_TRUE(found_the_same(got, generate(*model, src, mask, options), reference));
      for (const auto& one : got) lengths.insert(one[0].tokens.size());
    }
  }
  EXPECT_GT(lengths.size(), 1u) << "sources that all leave at once would prove little";
}

// Pairs of words of which the plain model prefers one and the frozen model the other, by less than
// the stated rounding: every token differs, and so does everything after it.
TEST(FrozenGenerate, TiesMayFallEitherWay) {
  Dice dice(9);
  int64_t different = 0, sources = 0;
  for (unsigned seed = 0; seed < 9; ++seed) {
    SCOPED_TRACE(seed);
    auto model = any_model(dice, seed);
    // A norm over a few numbers magnifies rounding beyond the gap between the paired words.
    while (model->options.d_model() < 8) model = any_model(dice, seed);
    const torch::NoGradGuard no_grad;
    const auto& out = model->final_layer;
    const auto weight = out->effective_weight();
    const int64_t half = weight.size(0) / 2;
    const auto counterparts = [&](const torch::Tensor& x) { return x.narrow(0, half, half); };
    counterparts(weight).copy_(weight.narrow(0, 0, half));
    counterparts(out->bias).copy_(out->bias.narrow(0, 0, half));
    const auto src = any_ids(dice, 4, 8, true);
    const auto mask = AttentionMask::padding(src, kPad);
    const int64_t beams = 1 + seed % 3;
    const auto options = GenerateOptions(kBegin, kEnd)
                             .eos_ids({})
                             .max_new_tokens(3)
                             .num_beams(beams)
                             .num_return_sequences(beams);
    SearchReference reference(
        Transformer(std::dynamic_pointer_cast<TransformerImpl>(model->clone())), src, mask, options,
        Op::Scores);
    const double gap = allowance(Op::Scores, torch::kFloat, 0.0) / 5;
    counterparts(out->bias).add_(gap);
    const auto got = generate(freeze(model), src, mask, options);
    counterparts(out->bias).sub_(2 * gap);
    const auto expected = generate(*model, src, mask, options);
    EXPECT_TRUE(found_the_same(got, expected, reference));
    for (size_t b = 0; b < got.size(); ++b, ++sources)
      different += got[b][0].tokens != expected[b][0].tokens;
  }
  EXPECT_GT(different, sources / 2) << "where they agree nothing is tried";
}

TEST(FrozenGenerate, IsTheSameFromFreezeToFreeze) {
  Dice dice(10);
  auto model = any_model(dice, 10);
  const auto src = any_ids(dice, 12, 9, true);
  const auto run = [&] {
    return generate(
        freeze(model), src, AttentionMask::padding(src, kPad),
        GenerateOptions(kBegin, kEnd).max_new_tokens(12).num_beams(3).num_return_sequences(3));
  };
  const auto first = run();
  for (int i = 0; i < 4; ++i) expect_bit_equal(run(), first);
  EXPECT_EQ(FreezeOptions().gemm(), GemmBackend::Native);
}

// A draw at the boundary between two words, or a word at the boundary of top_k, may go either way.
TEST(FrozenGenerate, DrawsWhatTheModelDraws) {
  Dice dice(2);
  int64_t different = 0, sequences = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    auto model = any_model(dice, seed);
    const auto src = any_ids(dice, 3, 6, true);
    const auto mask = AttentionMask::padding(src, kPad);
    const auto draw = [&](auto&& from) {
      return generate(from, src, mask,
                      GenerateOptions(kBegin, kEnd)
                          .max_new_tokens(8)
                          .do_sample(true)
                          .num_return_sequences(4)
                          .top_k(6)
                          .generator(at::detail::createCPUGenerator(testing::seed(seed))));
    };
    const Found got = draw(freeze(model)), expected = draw(*model);
    for (size_t b = 0; b < got.size(); ++b)
      for (size_t i = 0; i < got[b].size(); ++i, ++sequences) {
        if (got[b][i].tokens != expected[b][i].tokens) {
          ++different;
          continue;
        }
        EXPECT_TRUE(within(Op::Scores, torch::tensor(got[b][i].score, torch::kFloat),
                           torch::tensor(expected[b][i].score, torch::kFloat)));
      }
  }
  EXPECT_EQ(sequences, 120);
  EXPECT_LE(different, 4);
}

TEST(FrozenGenerate, TakesMasksOfEveryKind) {
  Dice dice(3);
  auto model = any_model(dice, 3);
  while (common_heads(model->options) == 1) model = any_model(dice, 3);
  const auto frozen = freeze(model);
  const int64_t heads = common_heads(model->options);
  const auto src = any_ids(dice, 4, 6, false);
  const auto bias = torch::randn({4, heads, 1, 6});
  bias.masked_fill_(torch::rand({4, 1, 1, 6}) < 0.3, -1e4);
  for (const int64_t beams : {1, 3}) {
    const auto options = GenerateOptions(kBegin, kEnd)
                             .max_new_tokens(9)
                             .num_beams(beams)
                             .num_return_sequences(beams);
    for (const auto& mask :
         {AttentionMask::additive(bias), AttentionMask::additive(bias.narrow(0, 1, 1)),
          AttentionMask::allowed_pairs(torch::rand({1, 6}) < 0.6)}) {
      SearchReference reference(model, src, mask, options, Op::Scores);
      EXPECT_TRUE(found_the_same(generate(frozen, src, mask, options),
                                 generate(*model, src, mask, options), reference));
    }
  }
}

TEST(FrozenGenerate, IsTheSameWithAnyNumberOfThreads) {
  Dice dice(4);
  auto model = any_model(dice, 4);
  const auto frozen = freeze(model, FreezeOptions().gemm(GemmBackend::Native));
  const auto src = any_ids(dice, 20, 20, true);
  const auto options =
      GenerateOptions(kBegin, kEnd).max_new_tokens(12).num_beams(3).num_return_sequences(3);
  Found first;
  for (const int threads : {1, 2, 3, 4}) {
    const Threads set(threads);
    const auto got = generate(frozen, src, AttentionMask::padding(src, kPad), options);
    if (first.empty()) first = got;
    expect_bit_equal(got, first);
  }
}

TEST(FrozenGenerate, ServesEightThreads) {
  Dice dice(5);
  auto model = any_model(dice, 5);
  const auto frozen = freeze(model, FreezeOptions().gemm(GemmBackend::Native));
  const auto run = [&](int64_t i, const torch::Tensor& src) {
    return generate(frozen, src, AttentionMask::padding(src, kPad),
                    GenerateOptions(kBegin, kEnd).max_new_tokens(4 + i).num_beams(1 + i % 3));
  };
  std::vector<torch::Tensor> sources;
  std::vector<Found> expected, got(8);
  for (int64_t i = 0; i < 8; ++i) {
    sources.push_back(any_ids(dice, 1 + i, 3 + 2 * i, true));
    expected.push_back(run(i, sources.back()));
  }
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < 8; ++i) threads.emplace_back([&, i] { got[i] = run(i, sources[i]); });
  for (auto& thread : threads) thread.join();
  for (size_t i = 0; i < 8; ++i) expect_bit_equal(got[i], expected[i]);
}

// Memory is allocated for the output as it grows, not for its maximum length; with many rows, not
// even for a few steps ahead.
TEST(FrozenGenerate, TakesNoMemoryAheadOfItsUse) {
  torch::manual_seed(seed(11));
  Transformer model(TransformerOptions(20, 20)
                        .d_model(64)
                        .num_heads(1)
                        .num_encoder_layers(1)
                        .num_decoder_layers(4)
                        .d_ff(8)
                        .max_len(64));
  model->eval();
  const auto frozen = freeze(model);
  constexpr int64_t kRows = 20000;
  const auto src = torch::full({kRows, 1}, 3, torch::kLong);
  const auto options = GenerateOptions(kBegin, kEnd).max_new_tokens(64);
  const TestAllocator counting;
  generate(frozen, src, {}, GenerateOptions(options).progress([](const auto&) { return false; }));
  // Keys and values of four layers: 512 floats, plus a cache line.
  EXPECT_GE(counting.most(), size_t{kRows * 512 * 4}) << "of the one step";
  EXPECT_LT(counting.most(), size_t{2 * kRows * 528 * 4});
}

// Nor for relative positions, of which a model without other positions has any number.
TEST(FrozenGenerate, TakesNoMemoryForDistancesAheadOfTheirUse) {
  torch::manual_seed(seed(13));
  Transformer model(TransformerOptions(20, 20)
                        .d_model(8)
                        .num_heads(2)
                        .num_encoder_layers(1)
                        .num_decoder_layers(1)
                        .d_ff(8)
                        .position_ids(embeddings::PositionIds::None)
                        .decoder_relative(relative::Buckets{.bidirectional = false}));
  model->eval();
  const auto frozen = freeze(model);
  const auto src = torch::full({2, 3}, 3, torch::kLong);
  const auto options = GenerateOptions(kBegin, kEnd).suppress_tokens({kEnd});
  {
    const TestAllocator counting;
    generate(frozen, src, {},
             GenerateOptions(options).max_new_tokens(1 << 20).progress(
                 [](const auto& progress) { return progress.step < 2; }));
    EXPECT_LT(counting.most(), size_t{1} << 20);
  }
  // More tokens than those that are computed at first.
  const auto long_ones = GenerateOptions(options).max_new_tokens(150);
  const auto found = generate(frozen, src, long_ones), expected = generate(model, src, long_ones);
  for (size_t b = 0; b < found.size(); ++b) {
    EXPECT_EQ(found[b][0].tokens, expected[b][0].tokens);
    EXPECT_NEAR(found[b][0].score, expected[b][0].score, 1e-4);
  }
}

TEST(FrozenGenerate, StopsOnRequest) {
  Dice dice(6);
  auto model = any_model(dice, 6);
  const auto src = any_ids(dice, 3, 4, false);
  const auto all =
      generate(freeze(model), src, {},
               GenerateOptions(kBegin, kEnd)
                   .eos_ids({})
                   .max_new_tokens(9)
                   .progress([](const GenerateProgress& progress) { return progress.step < 3; }));
  for (const auto& one : all) EXPECT_EQ(one[0].tokens.size(), 3u);
  EXPECT_TRUE(generate(freeze(model), torch::empty({0, 3}, torch::kLong), {},
                       GenerateOptions(kBegin, kEnd).max_new_tokens(9))
                  .empty());
}

TEST(FrozenGenerateErrors, NamesWhatIsWrong) {
  Dice dice(7);
  auto model = any_model(dice, 7);
  const auto frozen = freeze(model);
  const auto src = any_ids(dice, 3, 4, false);
  EXPECT_ERROR(generate(frozen, src[0], {}, GenerateOptions(kBegin, kEnd)), c10::ValueError,
               "[generate] src must be ids (B, S). Got [4]");
  EXPECT_ERROR(generate(frozen, {}, {}, GenerateOptions(kBegin, kEnd)), c10::ValueError,
               "[generate] src must be ids (B, S). Got an undefined tensor");
  EXPECT_ERROR(generate(model, {}, {}, GenerateOptions(kBegin, kEnd)), c10::ValueError,
               "Got an undefined tensor");
  EXPECT_ERROR(frozen.encode({}), c10::ValueError, "src must be ids (B, L). Got an undefined");
  EXPECT_ERROR(generate(frozen, src, {}, GenerateOptions(kBegin, 999).max_new_tokens(9)),
               c10::ValueError, "each of eos_ids must lie in [0, ");
  EXPECT_ERROR(
      generate(frozen, src, {},
               GenerateOptions(kBegin, kEnd).max_new_tokens(9).num_beams(int64_t{1} << 60)),
      c10::ValueError, "num_beams must be at most 65536");
  EXPECT_ERROR(generate(frozen, src, {},
                        GenerateOptions(kBegin, kEnd)
                            .max_new_tokens(9)
                            .do_sample(true)
                            .num_return_sequences(int64_t{1} << 60)),
               c10::ValueError, "num_return_sequences must be at most 65536");
  EXPECT_ERROR(
      generate(frozen, src, {}, GenerateOptions(kBegin, kEnd).max_new_tokens(9).num_beams(0)),
      c10::ValueError, "beams must be positive. Got 0");
  EXPECT_ERROR(generate(frozen, src, {}, GenerateOptions(kBegin, kEnd).max_new_tokens(65)),
               c10::ValueError, "at most the model's max_len 64");
}

}  // namespace
}  // namespace posenc::testing
