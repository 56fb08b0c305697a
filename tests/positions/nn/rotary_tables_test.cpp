// The tables of cos and sin that modules with equal options share, and what they are computed from.

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/positions/rotary/rotary_preset.h"
#include "posenc/transformer/attention/multihead_attention.h"
#include "positions/nn/rotary_embedding_internals.h"
#include "positions/nn/rotary_tables.h"
#include "support/compare.h"
#include "support/test_device/test_device.h"

namespace posenc::rotary_tables_test {
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

RotaryOptions yarn(double attention_factor) {
  rotary::Yarn scaling{4.0, 32.0};
  scaling.attention_factor = attention_factor;
  return llama(16).scaling(scaling);
}

// Frequencies and their factor are those of construction, and the factor is no other module's.
TEST(RotaryTables, BelongToTheAttentionFactor) {
  RotaryEmbedding changed(yarn(1.0)), other(yarn(1.2));
  const auto ids = range(0, 6);
  changed->options.rotary(yarn(1.2));
  expect_cos_sin(changed->cos_sin(ids), rotary_cos_sin(yarn(1.0), ids));
  expect_cos_sin(other->cos_sin(ids), rotary_cos_sin(yarn(1.2), ids));
  const auto copy = std::dynamic_pointer_cast<RotaryEmbeddingImpl>(changed->clone());
  expect_cos_sin(copy->cos_sin(ids), rotary_cos_sin(yarn(1.0), ids));
}

TEST(RotaryTables, BelongToTheFrequenciesThatHaveGrown) {
  const auto dynamic = llama(64).scaling(rotary::Dynamic{4.0, 32});
  const auto options = RotaryEmbeddingOptions(dynamic).casts_frequencies(true);
  RotaryEmbedding grown(options),
      fixed(RotaryEmbeddingOptions(options).length_rule(LengthRule::Fixed).length(64));
  grown->cos_sin(range(0, 64));
  grown->to(torch::kBFloat16);
  fixed->to(torch::kBFloat16);
  grown->options.length_rule(LengthRule::Fixed).length(64);
  const auto rounded = grown->cos_sin(range(0, 60));
  const auto exact = rotary_cos_sin(dynamic, rotary_frequencies(dynamic, 64), range(0, 60));
  EXPECT_FALSE(bit_equal(rounded.cos, exact.cos));
  expect_cos_sin(fixed->cos_sin(range(0, 60)), exact);
}

// What a module computes is what it would compute without tables. The longer call is the second,
// as for rotary::Dynamic it counts in later ones.
void expect_own_values(RotaryEmbeddingImpl& module, const std::string& what) {
  SCOPED_TRACE(what);
  const int64_t cache_rows = module.options.cache_rows();
  for (const int64_t rows : {20, 60}) {
    for (const auto dtype : {torch::kFloat, torch::kBFloat16}) {
      const auto got = module.cos_sin(range(0, rows), dtype);
      module.options.cache_rows(1);
      expect_cos_sin(got, module.cos_sin(range(0, rows), dtype));
      module.options.cache_rows(cache_rows);
    }
  }
}

struct Change {
  const char* name;
  std::function<void(RotaryEmbedding&)> make;
};

// Whatever happens to one module changes nothing in another, even one that then has the same
// options and the same buffers.
TEST(RotaryTables, AreTheSameWithOrWithoutOtherModules) {
  const std::vector<double> narrow(8, 1.5), wide(8, 3.0);
  const std::vector<RotaryOptions> all = {
      yarn(1.0), yarn(1.2), llama(16).scaling(rotary::Dynamic{4.0, 32}),
      llama(16).scaling(rotary::LongRope{narrow, wide, 32.0, 4.0}),
      llama(16).scaling(rotary::LongRope{narrow, wide, 32.0, 4.0, 1.3})};
  const std::vector<Change> changes = {
      {"cast", [](RotaryEmbedding& m) { m->to(torch::kBFloat16); }},
      {"cast and back",
       [](RotaryEmbedding& m) {
         m->to(torch::kBFloat16);
         m->to(torch::kFloat);
       }},
      {"grown and cast",
       [](RotaryEmbedding& m) {
         m->cos_sin(range(0, 64));
         m->to(torch::kBFloat16);
       }},
      {"inv_freq written", [](RotaryEmbedding& m) { m->inv_freq.mul_(2.0); }},
      {"inv_freq written by pointer",
       [](RotaryEmbedding& m) { m->inv_freq.data_ptr<float>()[1] = 0.5F; }},
      {"clone", [](RotaryEmbedding& m) {
         m = RotaryEmbedding(std::dynamic_pointer_cast<RotaryEmbeddingImpl>(m->clone()));
       }}};
  for (size_t from = 0; from < all.size(); ++from) {
    for (size_t to = 0; to < all.size(); ++to) {
      for (const auto& [name, make] : changes) {
        RotaryEmbedding one(RotaryEmbeddingOptions(all[from]).casts_frequencies(true));
        const std::string what = c10::str(name, ", ", from, " to ", to);
        make(one);
        one->options.rotary(all[to]);
        expect_own_values(*one, what + ", changed");
        one->options.length_rule(LengthRule::Fixed).length(64);
        expect_own_values(*one, what + ", fixed");
        make(one);
        expect_own_values(*one, what + ", changed again");
        RotaryEmbedding fresh(one->options), same(one->options);
        make(same);
        expect_own_values(*fresh, what + ", fresh");
        expect_own_values(*same, what + ", with the same change");
      }
    }
  }
}

}  // namespace
}  // namespace posenc::rotary_tables_test
