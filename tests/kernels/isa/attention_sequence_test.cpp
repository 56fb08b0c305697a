// Attention over packed sequences, against at::scaled_dot_product_attention on each one in float64.

#include <ATen/ops/scaled_dot_product_attention.h>

#include <cmath>
#include <limits>

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
  int64_t heads, width;
  Sequences queries, keys;
  bool is_causal = false;
  torch::Tensor query, both, bias;

  Case(int64_t heads_, int64_t width_, const std::vector<int64_t>& lengths,
       const std::vector<int64_t>& key_lengths)
      : heads(heads_), width(width_), queries(lengths, 1), keys(key_lengths, 2) {
    query = torch::randn({queries.rows, heads * width + 3});
    both = torch::randn({keys.rows, 2 * heads * width + 1});
  }

  int64_t batch() const { return static_cast<int64_t>(queries.lengths.size()); }

  torch::Tensor expected() const {
    const auto out = torch::full({queries.rows, heads * width}, 7.0, torch::kDouble);
    const auto heads_of = [&](const torch::Tensor& x, const Sequences& of, int64_t i, int64_t at) {
      return x.narrow(0, of.first[i], of.lengths[i])
          .narrow(1, at, heads * width)
          .unflatten(1, {heads, width})
          .transpose(0, 1)
          .to(torch::kDouble);
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
      const auto context = at::scaled_dot_product_attention(
          heads_of(query, queries, i, 0), heads_of(both, keys, i, 0),
          heads_of(both, keys, i, heads * width), added);
      to.copy_(context.transpose(0, 1).reshape({length, heads * width}));
    }
    return out;
  }

  torch::Tensor run(const Kernels& use, int64_t split) const {
    const auto out = torch::full({queries.rows, heads * width}, 7.0F);
    SequenceAttentionRequest request = {};
    request.query = query.const_data_ptr<float>();
    request.query_stride = query.size(1);
    request.keys = both.const_data_ptr<float>();
    request.values = request.keys + heads * width;
    request.key_stride = both.size(1);
    request.heads = heads;
    request.width = width;
    request.sequences = batch();
    request.query_first = queries.first.data();
    request.query_lengths = queries.lengths.data();
    request.key_first = keys.first.data();
    request.key_lengths = keys.lengths.data();
    request.scale = 1.0F / std::sqrt(static_cast<float>(width));
    request.is_causal = is_causal;
    if (bias.defined()) {
      request.bias = bias.const_data_ptr<float>();
      std::copy_n(bias.strides().begin(), 4, request.bias_strides);
    }
    request.out = out.data_ptr<float>();
    request.out_stride = out.size(1);
    std::vector<float> scratch(static_cast<size_t>(sequence_floats(width, keys.most)));
    const int64_t items = heads * batch();
    for (int64_t i = 0; i < items; i += split)
      use.attention_sequence.attend(request, i, std::min(i + split, items), scratch.data());
    return out;
  }
};

void check(const Case& one) {
  expect_on_each_set(Op::Sums, one.expected(), [&](const Kernels& use) {
    const auto whole = one.run(use, one.heads * one.batch());
    EXPECT_TRUE(testing::bit_equal(one.run(use, 1), whole));
    return whole;
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
  Case one(2, 16, {20, 50}, {30, 60});
  one.bias = torch::randn({2, 2, 50, 60});
  one.bias.masked_fill_(torch::rand({2, 2, 50, 60}) < 0.8, kForbidden);
  one.bias.select(3, 0).fill_(0.0F);
  check(one);
  one.bias.fill_(kForbidden);  // nothing is left to attend to
  on_each_set([&](const Kernels& use) {
    const auto seen = one.run(use, 1);
    for (int64_t i = 0; i < 2; ++i)
      EXPECT_FALSE(seen.narrow(0, one.queries.first[i], one.queries.lengths[i]).any().item<bool>());
  });
}

TEST(InferenceSequences, LargeScoresDoNotOverflow) {
  Case one(1, 16, {30}, {9});
  one.query.mul_(1e4);
  check(one);
}

}  // namespace
}  // namespace posenc::kernels::inference
