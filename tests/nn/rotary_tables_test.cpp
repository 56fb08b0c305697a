// The tables of cos and sin that modules with equal options share, and what they are computed from.

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <utility>
#include <vector>

#include "nn/rotary_embedding_internals.h"
#include "nn/rotary_grid_tables.h"
#include "posenc/nn/attention/multihead_attention.h"
#include "posenc/sinusoid/rotary_preset.h"
#include "support/compare.h"
#include "support/test_device/test_device.h"

namespace posenc {
namespace {

using testing::bit_equal;

RotaryOptions llama(int64_t dim) { return rotary_preset("llama", dim).base(500000.0); }

torch::Tensor range(int64_t begin, int64_t end) { return torch::arange(begin, end, torch::kLong); }

const RotaryTables* tables(const RotaryEmbedding& module) {
  return RotaryEmbeddingAccess::tables(*module).get();
}

void expect_cos_sin(const RotaryCosSin& got, const RotaryCosSin& want) {
  EXPECT_TRUE(bit_equal(got.cos, want.cos));
  EXPECT_TRUE(bit_equal(got.sin, want.sin));
}

TEST(RotaryTables, AreThoseOfAllEqualModules) {
  RotaryEmbedding first(llama(16)), second(RotaryEmbeddingOptions(llama(16)).cache_rows(100));
  RotaryEmbedding other(llama(16).base(10000.0));
  MultiheadAttention attention(MultiheadAttentionOptions(32, 2).rotary(llama(16)));
  const RotaryTables* const shared = tables(first);
  EXPECT_EQ(tables(second), shared);
  EXPECT_EQ(tables(attention->rotary), shared);
  EXPECT_NE(tables(other), shared);
  const auto copy = std::dynamic_pointer_cast<RotaryEmbeddingImpl>(first->clone());
  EXPECT_EQ(RotaryEmbeddingAccess::tables(*copy).get(), shared);
  attention->to(torch::kBFloat16);
  EXPECT_EQ(tables(attention->rotary), shared);
  expect_cos_sin(second->cos_sin(range(0, 50)), first->cos_sin(range(0, 50)));
}

// What is written to the frequencies of one module, or read from a file, is that module's.
TEST(RotaryTables, BelongToTheFrequencies) {
  RotaryEmbedding first(llama(16)), second(llama(16));
  const auto expected = first->cos_sin(range(0, 9));
  second->inv_freq.mul_(2.0);
  EXPECT_NE(tables(second), tables(first));
  const auto doubled = second->cos_sin(range(0, 9));
  EXPECT_FALSE(bit_equal(doubled.cos, expected.cos));
  expect_cos_sin(first->cos_sin(range(0, 9)), expected);
  first->inv_freq.mul_(2.0);
  EXPECT_EQ(tables(second), tables(first));
  expect_cos_sin(first->cos_sin(range(0, 9)), doubled);
  RotaryEmbedding rounded(RotaryEmbeddingOptions(llama(16)).casts_frequencies(true)),
      same(RotaryEmbeddingOptions(llama(16)).casts_frequencies(true)), plain(llama(16));
  EXPECT_EQ(tables(rounded), tables(plain));
  rounded->to(torch::kBFloat16);
  same->to(torch::kBFloat16);
  EXPECT_NE(tables(rounded), tables(plain));
  EXPECT_EQ(tables(rounded), tables(same));
}

// Neither of these counts as a write for autograd.
TEST(RotaryTables, NoticeEveryWrite) {
  const auto ids = range(0, 10);
  const auto ones = torch::ones({10, 8});
  RotaryEmbedding module(llama(8));
  module->cos_sin(ids);
  module->inv_freq.data().zero_();
  EXPECT_TRUE(module->cos_sin(ids).cos.equal(ones));
  RotaryEmbedding original(llama(8)), cast(RotaryEmbeddingOptions(llama(8)));
  std::shared_ptr<RotaryEmbeddingImpl> copy;
  {
    const c10::InferenceMode inference;
    copy = std::dynamic_pointer_cast<RotaryEmbeddingImpl>(original->clone());
    cast->to(torch::kHalf);
    for (RotaryEmbeddingImpl* one : {copy.get(), cast.get()}) {
      one->cos_sin(ids);
      one->inv_freq.zero_();
      EXPECT_TRUE(one->cos_sin(ids).cos.equal(ones));
    }
  }
  EXPECT_FALSE(copy->inv_freq.is_inference());
}

TEST(RotaryTables, FollowTheModuleToADevice) {
  const torch::Device device = testing::test_device();
  RotaryEmbedding first(llama(16)), second(llama(16));
  const RotaryTables* const shared = tables(first);
  first->to(device);
  second->to(device, torch::kBFloat16);
  EXPECT_EQ(tables(first), shared);
  EXPECT_EQ(tables(second), shared);
  const auto copy = std::dynamic_pointer_cast<RotaryEmbeddingImpl>(first->clone(torch::kCPU));
  EXPECT_EQ(RotaryEmbeddingAccess::tables(*copy).get(), shared);
  first->inv_freq.mul_(2.0);
  EXPECT_NE(tables(first), shared);
  EXPECT_EQ(tables(second), shared);
}

// Only the new rows are computed, and each is that of the position alone.
TEST(RotaryTables, GrowByNewRows) {
  RotaryTables own({llama(16), ""});
  std::vector<std::pair<int64_t, int64_t>> asked;
  const auto rows = [&](int64_t count, int64_t most) {
    return own.rows(count, most, torch::kFloat, torch::kCPU, 0, [&](int64_t first, int64_t last) {
      asked.emplace_back(first, last);
      return rotary_cos_sin(llama(16), range(first, last));
    });
  };
  for (const int64_t count : {5, 64, 65, 100, 129, 2000, 2001, 3025}) {
    const RotaryCosSin table = rows(count, 1 << 20);
    expect_cos_sin(table, rotary_cos_sin(llama(16), range(0, asked.back().second)));
  }
  EXPECT_EQ(asked, (std::vector<std::pair<int64_t, int64_t>>{
                       {0, 64}, {64, 128}, {128, 256}, {256, 2000}, {2000, 3024}, {3024, 4048}}));
  rows(4049, 4050);
  EXPECT_EQ(asked.back(), (std::pair<int64_t, int64_t>(4048, 4050)));
  for (const auto& options : {llama(80), rotary_preset("llama4", 24),
                              llama(10).precision(Precision::Exact), rotary_preset("gptj", 6)}) {
    for (const auto dtype : {torch::kFloat, torch::kBFloat16}) {
      RotaryEmbedding module(options);
      for (const int64_t count : {3, 70, 131, 1500, 2600})
        expect_cos_sin(module->cos_sin(range(0, count), dtype),
                       rotary_cos_sin(options, range(0, count), dtype));
    }
  }
}

TEST(RotaryTables, TakeUnsignedPositions) {
  RotaryEmbedding module(llama(16));
  const auto expected = rotary_cos_sin(llama(16), range(0, 7));
  for (const auto type : {torch::kUInt16, torch::kUInt32, torch::kUInt64}) {
    expect_cos_sin(module->cos_sin(range(0, 7).to(type)), expected);
    expect_cos_sin(rotary_cos_sin(llama(16), range(0, 7).to(type)), expected);
  }
}

// A grid that is in use stays, and the one that was not used for the longest time goes.
TEST(RotaryTables, OfGridsKeepThoseInUse) {
  const auto options = RotaryPositionEmbedding2dOptions(rotary_preset("dinov3", 8)).cached_grids(2);
  RotaryPositionEmbedding2d module(options), equal(options);
  const auto shared = RotaryPositionEmbedding2dAccess::tables(*module);
  EXPECT_EQ(RotaryPositionEmbedding2dAccess::tables(*equal), shared);
  const auto kept = [&](int64_t height, torch::Dtype dtype) {
    return shared->find({1, height, 3}, dtype, torch::kCPU).cos.defined();
  };
  const auto use = [&](int64_t height, torch::Dtype dtype = torch::kFloat) {
    const auto expected =
        rotary_cos_sin(options.rotary(), rotary_grid(options.rotary(), {height, 3}), dtype);
    EXPECT_TRUE(bit_equal(module->cos_sin(height, 3, 1, dtype).cos, expected.cos));
  };
  use(2);
  use(4);
  use(2);  // no longer the oldest
  use(5);
  EXPECT_FALSE(kept(4, torch::kFloat));
  EXPECT_TRUE(kept(5, torch::kFloat) && kept(2, torch::kFloat));
  use(2, torch::kHalf);
  EXPECT_FALSE(kept(5, torch::kFloat));
  EXPECT_TRUE(kept(2, torch::kFloat) && kept(2, torch::kHalf));
  RotaryPositionEmbedding2d none(RotaryPositionEmbedding2dOptions(options).cached_grids(0));
  none->cos_sin(7, 3);
  EXPECT_FALSE(RotaryPositionEmbedding2dAccess::tables(*none)
                   ->find({1, 7, 3}, torch::kFloat, torch::kCPU)
                   .cos.defined());
}

// As transformers does after model.to(bfloat16): the frequencies of a longer sequence have replaced
// the buffer that is rounded; those of a still longer one are new.
TEST(RotaryTables, RoundFrequenciesThatHaveGrown) {
  const auto dynamic = llama(64).scaling(rotary::Dynamic{4.0, 32});
  RotaryEmbedding module(RotaryEmbeddingOptions(dynamic).casts_frequencies(true));
  const auto of = [&](int64_t length, int64_t rows, bool rounds) {
    RotaryFrequencies f = rotary_frequencies(dynamic, length);
    if (rounds) f.inv_freq = f.inv_freq.to(torch::kBFloat16).to(torch::kFloat);
    return rotary_cos_sin(dynamic, f, range(0, rows));
  };
  module->cos_sin(range(0, 100));
  module->to(torch::kBFloat16);
  expect_cos_sin(module->cos_sin(range(0, 60)), of(100, 60, true));
  const auto copy = std::dynamic_pointer_cast<RotaryEmbeddingImpl>(module->clone());
  copy->to(torch::kFloat);
  expect_cos_sin(copy->cos_sin(range(0, 100)), of(100, 100, true));
  expect_cos_sin(module->cos_sin(range(0, 101)), of(101, 101, false));
  expect_cos_sin(copy->cos_sin(range(0, 20)), of(0, 20, true));
  expect_cos_sin(copy->cos_sin(range(0, 100)), of(100, 100, false));
}

}  // namespace
}  // namespace posenc
