// posenc-budget: one operation in each of its formats
// Attention over packed sequences, in float32 and in bfloat16, against
// at::scaled_dot_product_attention on each one in float64; and with scores in 8 bits against
// attention in float32 that gets the scores of plain integers as a bias, bit for bit.

#include <ATen/ops/scaled_dot_product_attention.h>

#include <cmath>
#include <limits>

#include "kernels/int8.h"
#include "kernels/isa/plain_int8.h"
#include "kernels/isa/sets.h"
#include "support/seed.h"

namespace posenc::kernels::inference {
namespace {

using testing::Op;

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

// Sequences of rows in any order, possibly with other rows between them.
struct Sequences {
  std::vector<int64_t> first, lengths;
  int64_t rows = 0, most = 0;

  Sequences(const std::vector<int64_t>& lengths_, int64_t gap) : lengths(lengths_) {
    for (const int64_t length : lengths) {
      first.push_back(rows);
      rows += length + gap;
      most = std::max(most, length);
    }
    std::reverse(first.begin(), first.end());
    std::reverse(lengths.begin(), lengths.end());
  }
};

struct Case {
  int64_t heads, width, group;
  Sequences queries, keys;
  bool is_causal = false;
  int64_t window = kNoWindow;
  double softcap = 0.0;
  std::vector<int64_t> positions, key_tokens;
  torch::Tensor query, both, bias;

  Case(int64_t heads_, int64_t width_, const std::vector<int64_t>& lengths,
       const std::vector<int64_t>& key_lengths, int64_t group_ = 1)
      : heads(heads_), width(width_), group(group_), queries(lengths, 1), keys(key_lengths, 1) {
    query = torch::randn({queries.rows, heads * width + 3});
    both = torch::randn({keys.rows, 2 * heads / group * width + 1});
  }

  int64_t batch() const { return static_cast<int64_t>(queries.lengths.size()); }

  // Which pairs of rows of sequence i the window forbids.
  torch::Tensor outside(int64_t i) const {
    const int64_t length = queries.lengths[i];
    auto at = torch::arange(length);
    if (!positions.empty()) at = torch::tensor(positions).narrow(0, queries.first[i], length);
    return (at.unsqueeze(1) - at).abs() > window;
  }

  torch::Tensor capped(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                       const torch::Tensor& added) const {
    const auto scores = torch::matmul(q, k.transpose(1, 2)) / std::sqrt(static_cast<double>(width));
    return torch::matmul(torch::softmax(softcap * torch::tanh(scores / softcap) + added, -1), v);
  }

  torch::Tensor expected() const {
    const auto out = torch::full({queries.rows, heads * width}, 7.0, torch::kDouble);
    const int64_t kv_heads = heads / group;
    const auto heads_of = [&](const torch::Tensor& x, const Sequences& of, int64_t i, int64_t at,
                              int64_t count) {
      return x.narrow(0, of.first[i], of.lengths[i])
          .narrow(1, at, count * width)
          .unflatten(1, {count, width})
          .transpose(0, 1)
          .to(torch::kDouble)
          .repeat_interleave(heads / count, 0);
    };
    for (int64_t i = 0; i < batch(); ++i) {
      const int64_t length = queries.lengths[i], count = keys.lengths[i];
      auto to = out.narrow(0, queries.first[i], length);
      if (length == 0 || count == 0) {
        to.zero_();
        continue;
      }
      auto added = torch::zeros({heads, length, count}, torch::kDouble);
      if (bias.defined()) added += bias[i].slice(1, 0, length).slice(2, 0, count);
      if (is_causal) added.masked_fill_(torch::ones({length, count}).triu(1) > 0, kForbidden);
      if (window != kNoWindow) added.masked_fill_(outside(i), kForbidden);
      const auto q = heads_of(query, queries, i, 0, heads),
                 k = heads_of(both, keys, i, 0, kv_heads),
                 v = heads_of(both, keys, i, kv_heads * width, kv_heads);
      const auto context = softcap == 0.0 ? at::scaled_dot_product_attention(q, k, v, added)
                                          : capped(q, k, v, added);
      to.copy_(context.transpose(0, 1).reshape({length, heads * width}));
    }
    return out;
  }

  // With inputs that bfloat16 has.
  Case rounded() const {
    Case one = *this;
    one.query = query.to(torch::kBFloat16).to(torch::kFloat);
    one.both = both.to(torch::kBFloat16).to(torch::kFloat);
    return one;
  }

  float scale() const { return 1.0F / std::sqrt(static_cast<float>(width)); }

  // The same in float32 as what scores in 8 bits are: in sequences with enough keys, queries and
  // keys are zero, and their scores a bias.
  Case scored() const {
    Case one = *this;
    one.query = query.clone();
    one.both = both.clone();
    one.bias = torch::zeros({batch(), heads, queries.most, keys.most});
    if (bias.defined()) one.bias += bias;
    for (int64_t i = 0; i < batch(); ++i) {
      const int64_t length = queries.lengths[i], count = keys.lengths[i];
      if (count < int8::kLeastScoredKeys) continue;
      for (int64_t head = 0; head < heads; ++head) {
        const auto q = plain_rows(query, queries, i, head),
                   k = plain_rows(both, keys, i, head / group);
        for (int64_t a = 0; a < length; ++a) {
          float* const to = one.bias[i][head][a].data_ptr<float>();
          for (int64_t b = 0; b < count; ++b) to[b] += int8::plain::score(q[a], k[b], scale());
        }
      }
      one.query.narrow(0, queries.first[i], length).zero_();
      one.both.narrow(0, keys.first[i], count).narrow(1, 0, heads / group * width).zero_();
    }
    return one;
  }

  // The rows of a head of sequence i.
  std::vector<int8::plain::Quantized> plain_rows(const torch::Tensor& x, const Sequences& of,
                                                 int64_t i, int64_t head) const {
    std::vector<int8::plain::Quantized> rows;
    for (int64_t row = of.first[i]; row < of.first[i] + of.lengths[i]; ++row)
      rows.push_back(
          int8::plain::plain_row(x.const_data_ptr<float>() + row * x.size(1) + head * width, width,
                                 int8::plain::Kind::Weight));
    return rows;
  }

  torch::Tensor run(const InferenceKernels& use, int64_t split,
                    AttentionProducts products = AttentionProducts::Float32) const {
    const auto out = torch::full({queries.rows, heads * width}, 7.0F);
    SequenceAttentionRequest request = {};
    request.query = query.const_data_ptr<float>();
    request.query_stride = query.size(1);
    request.keys = both.const_data_ptr<float>();
    request.values = request.keys + heads / group * width;
    request.key_stride = both.size(1);
    request.heads = heads;
    request.width = width;
    request.group = group;
    request.window = window;
    if (!positions.empty()) request.positions = positions.data();
    request.sequences = batch();
    request.query_first = queries.first.data();
    request.query_lengths = queries.lengths.data();
    request.key_first = keys.first.data();
    request.key_lengths = keys.lengths.data();
    if (!key_tokens.empty()) request.key_tokens = key_tokens.data();
    request.scale = scale();
    request.softcap = static_cast<float>(softcap);
    request.is_causal = is_causal;
    if (bias.defined()) {
      request.bias = bias.const_data_ptr<float>();
      std::copy_n(bias.strides().begin(), 4, request.bias_strides);
    }
    request.out = out.data_ptr<float>();
    request.out_stride = out.size(1);
    const SequenceAttention own = sequence_attention(use, products, width, keys.most);
    std::vector<float> scratch(static_cast<size_t>(own.scratch_floats + 1), 7.0F);
    const int64_t items = heads * batch();
    for (int64_t i = 0; i < items; i += split)
      own.kernels.attend(request, i, std::min(i + split, items), scratch.data());
    EXPECT_EQ(scratch.back(), 7.0F) << "memory beside the scratch changed";
    return out;
  }
};

constexpr AttentionProducts kFloat32 = AttentionProducts::Float32,
                            kBFloat16 = AttentionProducts::BFloat16,
                            kInt8Scores = AttentionProducts::Int8Scores;

// All items at once, and each by itself.
torch::Tensor run_both(const Case& one, const InferenceKernels& use, AttentionProducts products) {
  const auto whole = one.run(use, one.heads * one.batch(), products);
  EXPECT_TRUE(testing::bit_equal(one.run(use, 1, products), whole));
  return whole;
}

void check(const Case& one) {
  expect_on_each_set(Op::Sums, one.expected(),
                     [&](const InferenceKernels& use) { return run_both(one, use, kFloat32); });
  expect_on_each_set(Op::BFloat16Attention, one.rounded().expected(),
                     [&](const InferenceKernels& use) { return run_both(one, use, kBFloat16); });
  const Case scored = one.scored();
  expect_on_each_set(Op::Sums, scored.expected(), [&](const InferenceKernels& use) {
    const auto got = run_both(one, use, kInt8Scores);
    EXPECT_TRUE(testing::bit_equal(got, scored.run(use, 1)));
    return got;
  });
}

const std::vector<int64_t> kLengths = {1, 0, 12, 47, 24, 48, 49, 16, 100},
                           kKeyLengths = {3, 5, 8, 0, 64, 17, 1, 130, 4};

TEST(InferenceSequences, SelfAttention) {
  torch::manual_seed(testing::seed(1));
  for (const int64_t width : {1, 5, 16, 24, 64, 80})
    for (const bool is_causal : {false, true}) {
      Case one(1 + width % 3, width, kLengths, kLengths);
      one.is_causal = is_causal;
      check(one);
    }
}

TEST(InferenceSequences, OtherKeys) {
  torch::manual_seed(testing::seed(2));
  for (const bool is_causal : {false, true}) {
    Case one(2, 24, kLengths, kKeyLengths);
    one.is_causal = is_causal;
    check(one);
  }
}

TEST(InferenceSequences, BiasesOfEveryShape) {
  torch::manual_seed(testing::seed(3));
  Case one(3, 8, kLengths, kKeyLengths);
  const int64_t batch = one.batch(), queries = one.queries.most, keys = one.keys.most;
  const std::vector<std::vector<int64_t>> shapes = {
      {batch, 3, queries, keys}, {batch, 1, 1, keys}, {1, 3, queries, 1}, {1, 1, queries, keys}};
  for (const auto& shape : shapes) {
    one.bias = torch::randn(shape).expand({batch, 3, queries, keys});
    check(one);
  }
}

TEST(InferenceSequences, ForbiddenKeys) {
  torch::manual_seed(testing::seed(4));
  Case one(2, 16, {20, 50}, {30, 90});
  one.bias = torch::randn({2, 2, 50, 90});
  one.bias.masked_fill_(torch::rand({2, 2, 50, 90}) < 0.8, kForbidden);
  one.bias.select(3, 0).fill_(0.0F);
  check(one);
  one.bias.fill_(kForbidden);  // nothing is left to attend to
  on_each_set([&](const InferenceKernels& use) {
    for (const auto products : {kFloat32, kBFloat16, kInt8Scores}) {
      const auto seen = one.run(use, 1, products);
      for (int64_t i = 0; i < 2; ++i)
        EXPECT_FALSE(
            seen.narrow(0, one.queries.first[i], one.queries.lengths[i]).any().item<bool>());
    }
  });
}

TEST(InferenceSequences, SharedKeys) {
  torch::manual_seed(testing::seed(5));
  for (const int64_t group : {2, 3, 6})
    for (const bool is_causal : {false, true}) {
      Case one(6, 20, kLengths, kKeyLengths, group);
      one.is_causal = is_causal;
      check(one);
    }
}

// Enough of them to be copied first.
TEST(InferenceSequences, ManyKeys) {
  torch::manual_seed(testing::seed(8));
  for (const bool is_causal : {false, true}) {
    Case one(2, 20, {400, 810, 5}, {900, 810, 5}, 2);
    one.is_causal = is_causal;
    check(one);
  }
}

// As of silence: a chain over all keys would round each of these terms in the same direction, which
// adds up to 4e-5.
TEST(InferenceSequences, ManyEqualValues) {
  torch::manual_seed(testing::seed(12));
  Case one(1, 16, {3}, {4000});
  one.query.zero_();
  one.both.narrow(1, 16, 16).fill_(0.7);
  const auto expected = one.expected().narrow(0, one.queries.first[0], 3);
  on_each_set([&](const InferenceKernels& use) {
    for (const auto products : {kFloat32, kInt8Scores}) {
      const auto got = one.run(use, 1, products).narrow(0, one.queries.first[0], 3);
      EXPECT_LT((got - expected).abs().max().item<double>(), 5e-6) << use.name;
    }
  });
}

// With and without rows that were dropped from each sequence, in between and at its beginning.
TEST(InferenceSequences, Windows) {
  torch::manual_seed(testing::seed(6));
  for (const int64_t window : {0, 1, 7, 48, 99, 100, 1000})
    for (const bool has_holes : {false, true})
      for (const bool is_causal : {false, true}) {
        SCOPED_TRACE(c10::str(window, " ", has_holes, " ", is_causal));
        Case one(2, 12, kLengths, kLengths, 1 + window % 2);
        one.window = window;
        one.is_causal = is_causal;
        if (has_holes) {
          const auto steps = torch::randint(1, 5, {one.queries.rows}).pow(2).cumsum(0);
          one.positions.assign(steps.const_data_ptr<int64_t>(),
                               steps.const_data_ptr<int64_t>() + one.queries.rows);
        }
        check(one);
      }
}

TEST(InferenceSequences, AWindowBesideABias) {
  torch::manual_seed(testing::seed(7));
  Case one(2, 16, kLengths, kLengths);
  one.window = 9;
  one.bias = torch::randn({one.batch(), 2, one.queries.most, one.keys.most});
  one.bias.masked_fill_(torch::rand(one.bias.sizes()) < 0.3, kForbidden);
  one.bias.diagonal(0, 2, 3).fill_(1.0F);
  check(one);
}

// Scores in 8 bits cannot be a bias, which is added to capped scores: only that they are capped.
TEST(InferenceSequences, Softcap) {
  torch::manual_seed(testing::seed(13));
  for (const bool is_causal : {false, true}) {
    for (const int64_t window : {kNoWindow, int64_t{9}}) {
      Case one(4, 20, kLengths, kLengths, 2);
      one.query.mul_(4.0);
      one.softcap = 2.0;
      one.is_causal = is_causal;
      one.window = window;
      expect_on_each_set(Op::Sums, one.expected(),
                         [&](const InferenceKernels& use) { return run_both(one, use, kFloat32); });
      expect_on_each_set(
          Op::BFloat16Attention, one.rounded().expected(),
          [&](const InferenceKernels& use) { return run_both(one, use, kBFloat16); });
      on_each_set([&](const InferenceKernels& use) {
        const auto away = run_both(one, use, kInt8Scores) - one.expected();
        EXPECT_LT(away.abs().max().item<double>(), 0.1);
      });
    }
  }
}

TEST(InferenceSequences, LargeScoresDoNotOverflow) {
  for (const int64_t keys : {9, 90}) {
    Case one(1, 16, {30}, {keys});
    one.query.mul_(1e4);
    check(one);
  }
}

// Padding does not count.
TEST(InferenceSequences, FewKeysAreScoredInFloat32) {
  torch::manual_seed(testing::seed(9));
  constexpr int64_t kLeast = int8::kLeastScoredKeys;
  Case tokens(2, 32, {70, 5, 70}, {kLeast, kLeast - 1, 1}),
      padded(2, 32, {70, 5, 70}, {90, 90, 90});
  padded.key_tokens = tokens.keys.lengths;
  for (const Case* one : {&tokens, &padded})
    on_each_set([&](const InferenceKernels& use) {
      const auto narrow = one->run(use, 1, kInt8Scores), wide = one->run(use, 1);
      for (int64_t i = 0; i < one->batch(); ++i) {
        const auto rows = [&](const torch::Tensor& x) {
          return x.narrow(0, one->queries.first[i], one->queries.lengths[i]);
        };
        EXPECT_EQ(torch::equal(rows(narrow), rows(wide)), tokens.keys.lengths[i] < kLeast);
      }
    });
}

// Heads of all widths up to several steps, and at the limits of the levels.
TEST(InferenceSequences, ScoresIn8BitsOfEveryWidth) {
  torch::manual_seed(testing::seed(10));
  for (int64_t width = 1; width <= 36; ++width) check(Case(1, width, {1 + 3 * width % 50}, {67}));
  for (const float sign : {1.0F, -1.0F}) {  // the largest sums, all of one sign
    Case one(1, 130, {49}, {64});
    one.query.fill_(2.0F);
    one.both.fill_(sign * 3.0F);
    check(one);
  }
}

// Rows of zeros, of subnormal numbers, around the least that is not taken for zero, and with one
// huge number: of a query, and of a key.
TEST(InferenceSequences, UnusualRowsIn8Bits) {
  torch::manual_seed(testing::seed(11));
  for (const float value :
       {0.0F, -0.0F, 1e-40F, 0x1p-100F, 0x1.fffffep-101F, 0x1p-126F, 1e30F, 3.4e38F, -3.4e38F}) {
    for (const bool whole : {false, true}) {
      SCOPED_TRACE(c10::str(value, " ", whole));
      Case one(2, 20, {60}, {70});
      for (const auto& row : {one.query[11], one.both[23]})
        (whole ? row.narrow(0, 20, 20) : row.narrow(0, 27, 1)).fill_(value);
      const Case scored = one.scored();
      on_each_set([&](const InferenceKernels& use) {
        EXPECT_TRUE(testing::bit_equal(one.run(use, 1, kInt8Scores), scored.run(use, 1)));
      });
    }
  }
}

// A query that is not finite has a result that is not, and no other has; a key makes all results
// NaN of those that see it, as in float32, also where a bias forbids it.
TEST(InferenceSequences, WhatIsNotFiniteIn8Bits) {
  torch::manual_seed(testing::seed(12));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr int64_t kRows = 100, kAt = 60;
  for (const float value : {nan, -kForbidden, kForbidden}) {
    for (const bool is_causal : {false, true}) {
      Case of_query(2, 16, {kRows}, {kRows}), of_key = of_query, forbidden = of_query;
      of_query.query = of_query.query.clone();
      of_query.query[kAt][20] = value;
      of_key.both = of_key.both.clone();
      of_key.both[kAt][20] = value;
      forbidden.both = of_key.both;
      forbidden.bias = torch::zeros({1, 2, kRows, kRows});
      forbidden.bias.select(3, kAt).fill_(kForbidden);
      for (Case* one : {&of_query, &of_key, &forbidden}) {
        one->is_causal = is_causal;
        const Case scored = one->scored();
        auto expected = torch::zeros({kRows, 2}, torch::kBool);  // the second head
        if (one == &of_query) {
          expected[kAt][1] = true;
        } else {
          expected.select(1, 1).slice(0, is_causal ? kAt : 0).fill_(true);
        }
        on_each_set([&](const InferenceKernels& use) {
          const auto got = one->run(use, 1, kInt8Scores);
          EXPECT_TRUE(testing::bit_equal(got, scored.run(use, 1)));
          const auto is_nan = got.narrow(0, 0, kRows).isnan().unflatten(1, {2, 16});
          EXPECT_TRUE(torch::equal(is_nan.all(2), expected));
          EXPECT_TRUE(torch::equal(is_nan.any(2), expected));
          EXPECT_TRUE(!std::isnan(value) || torch::equal(one->run(use, 1).isnan(), got.isnan()));
        });
      }
    }
  }
}

}  // namespace
}  // namespace posenc::kernels::inference
