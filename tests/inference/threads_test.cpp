// The threads of frozen models: how many a call may have, that it leaves no trace of them, and that
// they change no bit.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "inference/models.h"
#include "inference/small_encoder.h"
#include "posenc/inference/score.h"
#include "posenc/models/classifier.h"
#include "support/compare.h"
#include "support/new_threads.h"
#include "support/threads.h"

namespace posenc::testing {
namespace {

// Wide enough that its loops have several parts.
Encoder large_encoder() {
  torch::manual_seed(testing::seed(52));
  Encoder model(EncoderOptions(
      EncoderEmbeddingsOptions(50, 192).position_rows(200),
      TransformerEncoderOptions(TransformerEncoderLayerOptions(192, 4).d_ff(500), 2)));
  model->eval();
  return model;
}

torch::Tensor ids(int64_t batch, int64_t length) {
  return torch::randint(1, 50, {batch, length}, torch::kLong);
}

TEST(FrozenThreads, ChangeNoBits) {
  const Encoder model = large_encoder();
  for (const auto weights : {WeightDtype::Float32, WeightDtype::Int8, WeightDtype::BFloat16}) {
    const auto options = FreezeOptions().weights(weights);
    const auto frozen = freeze(model, options),
               one = freeze(model, FreezeOptions(options).threads(1));
    for (const auto& [batch, length] : {std::pair(1, 3), {1, 16}, {2, 70}, {5, 130}}) {
      const auto given = ids(batch, length);
      const Threads most(8);
      const auto expected = one.forward(given).last_hidden_state;
      for (const int threads : {1, 2, 3, 8}) {
        const Threads guard(threads);
        EXPECT_TRUE(bit_equal(frozen.forward(given).last_hidden_state, expected)) << threads;
      }
    }
  }
}

TEST(FrozenThreads, ServeSeveralCallersAtOnce) {
  const auto frozen = freeze(large_encoder());
  const auto given = ids(2, 100);
  const auto expected = frozen.forward(given).last_hidden_state;
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 20; ++round)
        wrong += bit_equal(frozen.forward(given).last_hidden_state, expected) ? 0 : 1;
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(FrozenThreads, AreOneInsideAParallelRegion) {
  const auto frozen = freeze(large_encoder());
  const auto given = ids(3, 64);
  const auto expected = frozen.forward(given).last_hidden_state;
  const Threads guard(3);
  std::atomic<int> wrong{0};
  at::parallel_for(0, 6, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      wrong += bit_equal(frozen.forward(given).last_hidden_state, expected) ? 0 : 1;
  });
  EXPECT_EQ(wrong, 0);
}

TEST(FrozenThreads, OfTheCallerAreAsBefore) {
  const Threads guard(3);
  const auto options = FreezeOptions().threads(2);
  const auto encoder = freeze(small_encoder(), options);
  encoder.forward(ids(2, 5));
  EXPECT_EQ(at::get_num_threads(), 3);
  EXPECT_ANY_THROW(encoder.forward(torch::full({1, 2}, 50, torch::kLong)));
  EXPECT_EQ(at::get_num_threads(), 3);
  Dice dice(52);
  const auto model = freeze(any_model(dice, 52), options);
  model.decode(any_ids(dice, 1, 4, false), model.encode(any_ids(dice, 1, 3, false)));
  EXPECT_EQ(at::get_num_threads(), 3);
}

// A callback is the caller's own code: what it computes has the threads that it sets.
TEST(FrozenThreads, OfACallbackAreTheCallers) {
  Dice dice(53);
  const auto frozen = freeze(any_model(dice, 53), FreezeOptions().threads(1));
  const auto src = any_ids(dice, 2, 4, false);
  for (const int64_t beams : {1, 2}) {
    const Threads guard(3);
    int calls = 0;
    const auto sees = [&](int threads) {
      ++calls;
      EXPECT_EQ(at::get_num_threads(), threads);
      return true;
    };
    auto options =
        GenerateOptions(kBegin, kEnd).max_new_tokens(4).min_new_tokens(4).num_beams(beams);
    options.progress([&](const GenerateProgress&) { return sees(3); });
    options.stopping_criteria([&](const std::vector<int64_t>&) { return !sees(3); });
    if (beams == 1) options.on_token([&](const GeneratedToken&) { return sees(3); });
    generate(frozen, src, {}, options);
    EXPECT_GT(calls, 4);
    options.stopping_criteria(nullptr).on_token(nullptr).progress([](const GenerateProgress&) {
      at::set_num_threads(2);
      return true;
    });
    generate(frozen, src, {}, options);
    EXPECT_EQ(at::get_num_threads(), 2) << "what a callback sets stays";
    options.progress([](const GenerateProgress&) -> bool { throw std::runtime_error("enough"); });
    EXPECT_THROW(generate(frozen, src, {}, options), std::runtime_error);
    EXPECT_EQ(at::get_num_threads(), 2);
  }
}

// at::set_num_threads() sets MKL's threads for the whole process, which MKL prefers to OpenMP's.
TEST(FrozenThreads, AreAtMostTheLimitWithAnyBackend) {
  const Encoder model = large_encoder();
  const auto given = ids(1, 16);
  const Threads guard(4);
  freeze(model).forward(ids(3, 90));  // so that the helpers are there
  const auto product = [] { at::linear(torch::ones({500, 500}), torch::ones({500, 500})); };
  EXPECT_GT(new_threads([&] { at::set_num_threads(4), product(); }), 0) << "LibTorch has threads";
  for (const auto gemm : {GemmBackend::Native, GemmBackend::ATen, GemmBackend::Autotune}) {
    for (const int limit : {1, 2}) {
      const auto frozen = freeze(model, FreezeOptions().gemm(gemm).threads(limit));
      for (const int64_t length : {4, 16, 180}) {  // products alone have threads, loops, both
        const auto own = ids(4, length);
        EXPECT_LE(new_threads([&] {
                    at::set_num_threads(4);
                    frozen.forward(own);
                  }),
                  limit - 1)
            << static_cast<int>(gemm) << ", " << limit << ", " << length;
      }
    }
  }
}

TEST(FrozenThreads, OfScoringAreAtMostTheLimit) {
  torch::manual_seed(testing::seed(54));
  Transformer model(
      TransformerOptions(50, 30000).d_model(32).num_heads(2).d_ff(64).num_decoder_layers(1));
  model->eval();
  const auto frozen = freeze(model, FreezeOptions().threads(1)), all = freeze(model);
  const auto src = ids(6, 5);
  const std::vector<std::vector<int64_t>> targets(6, {1, 7, 9, 29999, 4, 3, 2, 8});
  const Threads guard(3);
  const auto expected = score(all, src, {}, targets);  // and the helpers are there
  std::vector<std::vector<double>> got;
  EXPECT_EQ(new_threads([&] {
              at::set_num_threads(3);
              got = score(frozen, src, {}, targets);
              EXPECT_EQ(at::get_num_threads(), 3);
            }),
            0);
  EXPECT_EQ(got, expected);
  for (const int threads : {1, 2}) {
    const Threads other(threads);
    EXPECT_EQ(score(all, src, {}, targets), expected);
  }
  const auto sampled = [&](const FrozenTransformer& from, int threads) {
    at::set_num_threads(threads);
    torch::manual_seed(3);
    const auto found =
        generate(from, src, {}, GenerateOptions(1, 2).do_sample(true).top_k(0).max_new_tokens(3));
    std::vector<std::vector<int64_t>> tokens;
    for (const auto& of_source : found) tokens.push_back(of_source[0].tokens);
    return tokens;
  };
  std::vector<std::vector<int64_t>> one;
  EXPECT_EQ(new_threads([&] { one = sampled(frozen, 3); }), 0);
  EXPECT_EQ(one, sampled(all, 3));
}

TEST(FrozenThreads, MustNotBeNegative) {
  for (const int64_t wrong : {-1, -8}) {
    try {
      freeze(small_encoder(), FreezeOptions().threads(wrong));
      ADD_FAILURE() << wrong;
    } catch (const c10::ValueError& error) {
      EXPECT_NE(std::string(error.what()).find("[freeze] threads must be positive, or 0"),
                std::string::npos)
          << error.what();
    }
  }
}

// LibTorch's products know only its own threads, so these models keep them.
TEST(FrozenThreads, OfTheOtherBackendsAreLibTorchs) {
  const Encoder model = large_encoder();
  const auto given = ids(3, 90);
  const auto expected = freeze(model).forward(given).last_hidden_state;
  for (const auto gemm : {GemmBackend::ATen, GemmBackend::Autotune}) {
    for (const int64_t threads : {0, 1, 2}) {
      const auto frozen = freeze(model, FreezeOptions().gemm(gemm).threads(threads));
      const Threads guard(3);
      EXPECT_LT(distance(frozen.forward(given).last_hidden_state, expected), 1e-5);
      EXPECT_EQ(at::get_num_threads(), 3);
    }
  }
}

}  // namespace
}  // namespace posenc::testing
