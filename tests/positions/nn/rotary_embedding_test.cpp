#include "posenc/positions/nn/rotary_embedding.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <limits>
#include <thread>

#include "posenc/positions/rotary/rotary_preset.h"
#include "support/compare.h"

namespace posenc {
namespace {

using rotary::HeadAxis;
using rotary::Pairing;
using testing::bit_equal;

RotaryOptions llama(int64_t dim) { return rotary_preset("llama", dim).base(500000.0); }

torch::Tensor range(int64_t begin, int64_t end) { return torch::arange(begin, end, torch::kLong); }

void expect_cos_sin(const RotaryCosSin& got, const RotaryCosSin& want) {
  EXPECT_TRUE(bit_equal(got.cos, want.cos));
  EXPECT_TRUE(bit_equal(got.sin, want.sin));
}

TEST(RotaryEmbedding, TurnsAsTheFunctionFromAnyOffset) {
  for (const auto dtype : {torch::kFloat, torch::kBFloat16}) {
    RotaryEmbedding module(llama(64));
    for (const int64_t offset : {0, 3, 1000, 40}) {
      const auto q = torch::randn({2, 4, 9, 64}).to(dtype),
                 k = torch::randn({2, 2, 9, 64}).to(dtype);
      const auto [got_q, got_k] = module->forward(q, k, offset);
      const auto [q1, k1] =
          functional::rotary(q, k, llama(64), functional::RotaryFuncOptions().offset(offset));
      EXPECT_TRUE(bit_equal(got_q, q1) && bit_equal(got_k, k1)) << offset;
      const auto ids = range(offset, offset + 9).expand({2, 9});
      EXPECT_TRUE(bit_equal(std::get<0>(module->forward(q, k, 0, ids)), q1)) << offset;
      module->forward_(q, k, offset);
      EXPECT_TRUE(bit_equal(q, q1) && bit_equal(k, k1)) << offset;
    }
  }
}

// The rows of a cached table equal those that are computed for the positions alone.
TEST(RotaryEmbedding, CachesWhatItWouldCompute) {
  RotaryEmbedding module(llama(80));
  for (const auto dtype : {torch::kFloat, torch::kHalf, torch::kFloat}) {
    for (const auto& ids : {range(0, 5), range(777, 801), torch::tensor({{4, 900, 2}, {0, 1, 33}}),
                            torch::tensor({5}, torch::kInt)}) {
      expect_cos_sin(module->cos_sin(ids, dtype), rotary_cos_sin(llama(80), ids, dtype));
    }
  }
  RotaryEmbedding small(RotaryEmbeddingOptions(llama(80)).cache_rows(16));
  const auto q = torch::randn({1, 30, 80});
  EXPECT_TRUE(bit_equal(std::get<0>(small->forward(q, {})), std::get<0>(module->forward(q, {}))));
}

TEST(RotaryEmbedding, TakesHeadsOnEitherSideOfTheLength) {
  const auto q = torch::randn({2, 7, 4, 64});
  RotaryEmbedding after(RotaryEmbeddingOptions(llama(64)).head_axis(HeadAxis::AfterLength));
  RotaryEmbedding before(llama(64));
  EXPECT_TRUE(bit_equal(std::get<0>(after->forward(q, {})),
                        std::get<0>(before->forward(q.transpose(1, 2), {})).transpose(1, 2)));
}

TEST(RotaryEmbedding, KeepsItsFrequenciesThroughHalfPrecision) {
  RotaryEmbedding module(llama(64)),
      cast(RotaryEmbeddingOptions(llama(64)).casts_frequencies(true));
  const auto before = module->inv_freq.clone();
  const auto ids = range(0, 100);
  cast->cos_sin(ids);  // fills the cache, which must not outlive its frequencies
  module->to(torch::kBFloat16);
  cast->to(torch::kBFloat16);
  EXPECT_TRUE(bit_equal(module->inv_freq, before));
  EXPECT_EQ(cast->inv_freq.scalar_type(), torch::kBFloat16);
  expect_cos_sin(module->cos_sin(ids), rotary_cos_sin(llama(64), ids));
  const RotaryFrequencies rounded{before.to(torch::kBFloat16).to(torch::kFloat)};
  expect_cos_sin(cast->cos_sin(ids), rotary_cos_sin(llama(64), rounded, ids));
  EXPECT_FALSE(cast->cos_sin(ids).cos.equal(module->cos_sin(ids).cos));
}

TEST(RotaryEmbedding, SeesThatItsFrequenciesWereWritten) {
  RotaryEmbedding module(llama(8));
  const auto ids = range(0, 10);
  module->cos_sin(ids);
  module->inv_freq.zero_();
  EXPECT_TRUE(module->cos_sin(ids).cos.equal(torch::ones({10, 8})));
}

TEST(RotaryEmbedding, NamesItsBufferAsPyTorchSavesIt) {
  RotaryEmbedding module(llama(8)), saved(RotaryEmbeddingOptions(llama(8)).persistent(true));
  EXPECT_EQ(module->named_buffers().keys(), std::vector<std::string>{"inv_freq"});
  EXPECT_EQ(module->non_persistent_names(), std::vector<std::string>{"inv_freq"});
  EXPECT_TRUE(saved->non_persistent_names().empty());
  EXPECT_EQ(c10::str(*module), "posenc::RotaryEmbedding(rotary=(dim=8, base=500000))");
  const auto copy = std::dynamic_pointer_cast<RotaryEmbeddingImpl>(saved->clone());
  EXPECT_TRUE(bit_equal(copy->inv_freq, saved->inv_freq));
}

// The lengths of rotary.Dynamic's documentation: 400, then 200, exactly 128, 127, then 129.
TEST(RotaryEmbedding, RemembersLengthsAsTransformersDoes) {
  auto options = llama(64);
  options.scaling(rotary::Dynamic{4.0, 128});
  RotaryEmbedding system(options);
  RotaryEmbedding per_call(RotaryEmbeddingOptions(options).length_rule(LengthRule::PerCall));
  RotaryEmbedding fixed(
      RotaryEmbeddingOptions(options).length_rule(LengthRule::Fixed).length(1000));
  const auto with = [&](int64_t length, int64_t rows) {
    return rotary_cos_sin(options, rotary_frequencies(options, length), range(0, rows));
  };
  const std::pair<int64_t, int64_t> calls[] = {{100, 0}, {400, 400}, {200, 400}, {128, 400},
                                               {127, 0}, {129, 129}, {401, 401}, {400, 401}};
  for (const auto& [rows, length] : calls) {
    SCOPED_TRACE(rows);
    expect_cos_sin(system->cos_sin(range(0, rows)), with(length, rows));
    expect_cos_sin(per_call->cos_sin(range(0, rows)), with(rows, rows));
    expect_cos_sin(fixed->cos_sin(range(0, rows)), with(1000, rows));
  }
}

TEST(RotaryEmbedding, SwitchesLongRopeByTheLargestPosition) {
  auto options = llama(8);
  options.scaling(rotary::LongRope{{1, 1, 1, 1}, {2, 3, 4, 5}, 32, 4.0, {}});
  RotaryEmbedding module(options);
  for (const int64_t rows : {32, 33, 20, 100}) {
    expect_cos_sin(module->cos_sin(range(0, rows)),
                   rotary_cos_sin(options, rotary_frequencies(options, rows), range(0, rows)));
  }
}

TEST(RotaryEmbedding, GrowsWhileOthersRead) {
  RotaryEmbedding module(llama(16));
  const auto want = rotary_cos_sin(llama(16), range(0, 3000));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 40; ++i) {
        const int64_t offset = (i * 73 + t * 7) % 2990;
        const auto got = module->cos_sin(range(offset, offset + 9));
        if (!got.cos.equal(want.cos.slice(0, offset, offset + 9))) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(RotaryEmbedding, IsExactAtAnyPosition) {
  const auto options = RotaryOptions(16, Pairing::Halves).precision(Precision::Exact);
  RotaryEmbedding module(options);
  EXPECT_FALSE(module->inv_freq.defined());
  const auto ids = torch::tensor({int64_t{0}, int64_t{100}, int64_t{2000000011}});
  expect_cos_sin(module->cos_sin(ids), rotary_cos_sin(options, ids));
}

TEST(RotaryEmbedding, CanBeUsedInTrainingAfterInferenceMode) {
  RotaryEmbedding module(llama(8));
  {
    const c10::InferenceMode inference;
    module->forward(torch::randn({1, 4, 8}), {});
  }
  const auto q = torch::randn({1, 4, 8}).requires_grad_();
  std::get<0>(module->forward(q, {})).sum().backward();
  EXPECT_TRUE(q.grad().defined());
}

TEST(RotaryEmbedding, AxialPositionsAreNoLookUp) {
  RotaryEmbedding module(rotary_preset("qwen2_vl_vision", 64));
  const auto ids = torch::tensor({{0, 0}, {0, 1}, {3, 2}});
  expect_cos_sin(module->cos_sin(ids), rotary_cos_sin(rotary_preset("qwen2_vl_vision", 64), ids));
}

// A position that is refused is not remembered.
TEST(RotaryEmbedding, AnErrorDoesNotLengthenTheSequence) {
  const auto options = llama(16).scaling(rotary::Dynamic{4.0, 128});
  RotaryEmbedding module(options), fresh(options);
  EXPECT_ERROR(module->cos_sin(torch::tensor({int64_t{1} << 40})), c10::ValueError, "2^31");
  expect_cos_sin(module->cos_sin(range(0, 200)), fresh->cos_sin(range(0, 200)));
}

TEST(RotaryEmbedding, RoundedFrequenciesAreNotServedFromTheCache) {
  RotaryEmbedding module(RotaryEmbeddingOptions(llama(64)).casts_frequencies(true));
  const auto before = module->cos_sin(range(0, 100)).cos;
  module->to(torch::kBFloat16);
  module->to(torch::kFloat);
  const auto after = module->cos_sin(range(0, 100)).cos;
  EXPECT_FALSE(bit_equal(before, after));
  const RotaryFrequencies rounded = {module->inv_freq, 1.0};
  EXPECT_TRUE(bit_equal(after, rotary_cos_sin(llama(64), rounded, range(0, 100)).cos));
}

// As in transformers after model.to(bfloat16): LongRoPE copies its other set into the buffer.
TEST(RotaryEmbedding, RoundsTheFrequenciesOfLongSequencesTooWhereItCasts) {
  const std::vector<double> ones(32, 1.0), longer(32, 3.7);
  const auto options = llama(64).scaling(rotary::LongRope{ones, longer, 32, 4.0, {}});
  RotaryEmbedding cast(RotaryEmbeddingOptions(options).casts_frequencies(true)), kept(options);
  cast->to(torch::kBFloat16);
  kept->to(torch::kBFloat16);
  for (const int64_t rows : {20, 100, 20}) {
    RotaryFrequencies f = rotary_frequencies(options, rows);
    expect_cos_sin(kept->cos_sin(range(0, rows)), rotary_cos_sin(options, f, range(0, rows)));
    f.inv_freq = f.inv_freq.to(torch::kBFloat16).to(torch::kFloat);
    expect_cos_sin(cast->cos_sin(range(0, rows)), rotary_cos_sin(options, f, range(0, rows)));
  }
}

// Dynamic's growth replaces the buffer, and Phi-MoE computes its frequencies in each call.
TEST(RotaryEmbedding, DoesNotRoundFrequenciesThatReplaceTheBuffer) {
  const auto dynamic = llama(64).scaling(rotary::Dynamic{4.0, 32});
  RotaryEmbedding module(RotaryEmbeddingOptions(dynamic).casts_frequencies(true));
  module->to(torch::kBFloat16);
  expect_cos_sin(module->cos_sin(range(0, 100)), rotary_cos_sin(dynamic, range(0, 100)));
  const auto phimoe =
      llama(64).scaling(rotary::PhiMoe{std::vector<double>(32, 1.3), 32, 1.25, 1.5});
  RotaryEmbedding fresh(RotaryEmbeddingOptions(phimoe).casts_frequencies(true));
  fresh->to(torch::kBFloat16);
  for (const int64_t rows : {20, 100})
    expect_cos_sin(fresh->cos_sin(range(0, rows)), rotary_cos_sin(phimoe, range(0, rows)));
}

TEST(RotaryEmbedding, MultipliesItsFrequenciesByALearnedScale) {
  RotaryEmbedding module(RotaryEmbeddingOptions(llama(8)).learned_scale(true)), plain(llama(8));
  EXPECT_TRUE(bit_equal(module->alpha, torch::zeros({4})));
  EXPECT_EQ(module->non_persistent_names(), std::vector<std::string>{"inv_freq"});
  const auto ids = range(0, 20);
  expect_cos_sin(module->cos_sin(ids), plain->cos_sin(ids));
  module->alpha.copy_(torch::tensor({0.0, -0.5, 0.25, 1.0}));
  const RotaryFrequencies scaled{plain->inv_freq * module->alpha.exp()};
  expect_cos_sin(module->cos_sin(ids), rotary_cos_sin(llama(8), scaled, ids));
  const auto alpha = module->alpha.clone();
  module->to(torch::kHalf);
  EXPECT_TRUE(bit_equal(module->alpha, alpha));
  EXPECT_ERROR(
      RotaryEmbedding(
          RotaryEmbeddingOptions(llama(8).precision(Precision::Exact)).learned_scale(true)),
      c10::ValueError, "learned_scale must be false");
}

// Systems have one position_ids for both.
TEST(RotaryEmbedding, TakesQueriesAndKeysOfOneLength) {
  for (const rotary::Scaling& scaling :
       {rotary::Scaling(rotary::Default{}), rotary::Scaling(rotary::Dynamic{4.0, 4}),
        rotary::Scaling(rotary::LongRope{{1, 1}, {2, 3}, 4, 4.0, {}})}) {
    const auto options = RotaryOptions(4, Pairing::Halves).scaling(scaling);
    RotaryEmbedding module(options);
    const auto q = torch::randn({1, 2, 3, 4}), k = torch::randn({1, 2, 9, 4});
    EXPECT_ERROR(
        module->forward(q, k), c10::ValueError,
        "cos and sin must have the batch and length of q and k. Got [3, 4] for [1, 2, 9, 4]");
    EXPECT_ERROR(functional::rotary(q, k, options), c10::ValueError,
                 "cos and sin must have the batch and length of q and k");
  }
}

TEST(RotaryEmbedding, TakesAnEmptySequence) {
  RotaryEmbedding module(llama(64));
  for (const int64_t offset : {0, 5}) {
    const auto [q, k] =
        module->forward(torch::zeros({2, 8, 0, 64}), torch::zeros({2, 2, 0, 64}), offset);
    EXPECT_EQ(q.sizes(), (std::vector<int64_t>{2, 8, 0, 64}));
    EXPECT_EQ(k.sizes(), (std::vector<int64_t>{2, 2, 0, 64}));
  }
}

TEST(RotaryEmbedding, RefusesWhatHasNoMeaning) {
  RotaryEmbedding module(llama(8));
  const auto q = torch::randn({1, 4, 8});
  EXPECT_ERROR(module->forward(q, {}, -1), c10::ValueError,
               "offset must not be negative, and positions must be below 2^31. Got -1");
  EXPECT_ERROR(module->forward(q, {}, std::numeric_limits<int64_t>::max()), c10::ValueError,
               "positions must be below 2^31");
  EXPECT_ERROR(module->forward(q, {}, 2, range(0, 4)), c10::ValueError, "offset must be 0");
  EXPECT_ERROR(module->forward({}, {}), c10::ValueError, "must be a tensor");
  EXPECT_ERROR(module->forward(q, {}, 0, torch::tensor({0, 1, -2, 3})), c10::ValueError, "Got -2");
  EXPECT_ERROR(module->forward(q, {}, 0, torch::ones({4})), c10::TypeError, "must be integers");
  EXPECT_ERROR(module->cos_sin({}), c10::ValueError, "position_ids must be a tensor");
  EXPECT_ERROR(RotaryEmbedding(RotaryEmbeddingOptions(llama(8)).length_rule(LengthRule::Fixed)),
               c10::ValueError, "length must be positive");
  EXPECT_ERROR(RotaryEmbedding(
                   RotaryEmbeddingOptions(llama(8).precision(Precision::Exact)).persistent(true)),
               c10::ValueError, "persistent and learned_scale must be false");
}

// As Python's deepcopy; a call without tokens changes nothing.
TEST(RotaryEmbedding, DynamicRemembersTheLongestSequence) {
  const auto options = llama(16).scaling(rotary::Dynamic{4.0, 8});
  RotaryEmbedding module(options);
  const auto q = torch::randn({1, 1, 10, 16}), none = torch::randn({1, 1, 0, 16});
  module->cos_sin(range(0, 100));
  const auto expected = std::get<0>(module->forward(q, {}));
  module->forward(none, {});
  EXPECT_TRUE(bit_equal(std::get<0>(module->forward(q, {})), expected));
  module->cos_sin(range(0, 0));
  EXPECT_TRUE(bit_equal(std::get<0>(module->forward(q, {})), expected));
  const auto copy = std::dynamic_pointer_cast<RotaryEmbeddingImpl>(module->clone());
  EXPECT_TRUE(bit_equal(std::get<0>(copy->forward(q, {})), expected));
}

}  // namespace
}  // namespace posenc
