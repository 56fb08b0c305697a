// One query per row, against at::scaled_dot_product_attention over gathered keys and values in
// float64.

#include <ATen/ops/scaled_dot_product_attention.h>

#include <cmath>

#include "kernels/isa/sets.h"
#include "support/seed.h"

namespace posenc::kernels::inference::attention_step_test {
namespace {

using testing::Op;

struct Case {
  int64_t rows, heads, width, capacity;
  torch::Tensor query, keys, values, bias;
  std::vector<std::vector<int32_t>> tokens;  // per row
  double softcap = 0.0;

  Case(int64_t rows_, int64_t heads_, int64_t width_, int64_t most, bool biased)
      : rows(rows_), heads(heads_), width(width_), capacity(most + 5) {
    query = torch::randn({rows, heads * width + 2});
    const auto both = torch::randn({2, capacity, heads * width + 3});
    keys = both[0];
    values = both[1];
    if (biased) bias = torch::randn({rows, heads, most});
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t count = row == 0 ? most : torch::randint(0, most + 1, {1}).item<int64_t>();
      const auto slots = torch::randperm(capacity).narrow(0, 0, count).to(torch::kInt);
      tokens.emplace_back(slots.const_data_ptr<int32_t>(), slots.const_data_ptr<int32_t>() + count);
    }
  }

  // The cache's rows at these slots, (heads, count, width).
  torch::Tensor at(const torch::Tensor& cache, const torch::Tensor& slots) const {
    const auto rows = cache.narrow(1, 0, heads * width).index_select(0, slots);
    return rows.view({-1, heads, width}).transpose(0, 1).to(torch::kDouble);
  }

  torch::Tensor expected() const {
    const auto out = torch::zeros({rows, heads, width}, torch::kDouble);
    for (int64_t row = 0; row < rows; ++row) {
      const auto count = static_cast<int64_t>(tokens[row].size());
      if (count == 0) continue;
      const auto slots = torch::tensor(tokens[row]).to(torch::kLong);
      std::optional<torch::Tensor> added;
      if (bias.defined()) {
        added = bias[row].narrow(1, 0, count).to(torch::kDouble).unsqueeze(1);
      }
      const auto q =
          query[row].narrow(0, 0, heads * width).view({heads, 1, width}).to(torch::kDouble);
      if (softcap == 0.0) {
        out[row] = at::scaled_dot_product_attention(q, at(keys, slots), at(values, slots), added)
                       .squeeze(1);
        continue;
      }
      auto scores = torch::matmul(q, at(keys, slots).transpose(1, 2)) / std::sqrt(1.0 * width);
      scores = softcap * torch::tanh(scores / softcap);
      if (added) scores += *added;
      out[row] = torch::matmul(torch::softmax(scores, -1), at(values, slots)).squeeze(1);
    }
    return out.view({rows, heads * width});
  }

  torch::Tensor run(const InferenceKernels& use, int64_t split) const {
    const auto out = torch::full({rows, heads * width}, 7.0F);
    // A token is a pointer to its key; its value is at the distance between the two tensors.
    std::vector<std::vector<const float*>> seen;
    std::vector<const float* const*> pointers;
    std::vector<int64_t> counts;
    for (const auto& one : tokens) {
      seen.emplace_back();
      for (const int32_t slot : one)
        seen.back().push_back(keys.const_data_ptr<float>() + slot * keys.size(1));
      counts.push_back(one.size());
    }
    for (const auto& one : seen) pointers.push_back(one.data());
    AttentionRequest request = {};
    request.query = query.const_data_ptr<float>();
    request.query_stride = query.size(1);
    request.heads = heads;
    request.width = width;
    request.value = values.const_data_ptr<float>() - keys.const_data_ptr<float>();
    request.tokens = pointers.data();
    request.counts = counts.data();
    request.scale = 1.0F / std::sqrt(static_cast<float>(width));
    request.softcap = static_cast<float>(softcap);
    if (bias.defined()) {
      request.bias = bias.const_data_ptr<float>();
      request.bias_row_stride = bias.stride(0);
      request.bias_head_stride = bias.stride(1);
    }
    request.out = out.data_ptr<float>();
    request.out_stride = heads * width;
    std::vector<float> scratch(static_cast<size_t>(capacity + 16));
    for (int64_t i = 0; i < rows * heads; i += split)
      use.attention_step.attend(request, i, std::min(i + split, rows * heads), scratch.data());
    return out;
  }
};

void check(const Case& one) {
  expect_on_each_set(Op::Sums, one.expected(), [&](const InferenceKernels& use) {
    const auto whole = one.run(use, one.rows * one.heads);
    EXPECT_TRUE(testing::bit_equal(one.run(use, 1), whole));
    return whole;
  });
}

TEST(InferenceAttention, AttendsToTheListedTokens) {
  torch::manual_seed(testing::seed(1));
  for (const int64_t width : {1, 5, 16, 24, 64, 80, 128})
    for (const int64_t most : {1, 3, 4, 17, 70})
      for (const bool biased : {false, true}) check(Case(4, 1 + most % 3, width, most, biased));
}

TEST(InferenceAttention, Softcap) {
  torch::manual_seed(testing::seed(2));
  for (const int64_t most : {1, 3, 4, 17, 70})
    for (const bool biased : {false, true}) {
      Case one(4, 3, 24, most, biased);
      one.query.mul_(4.0);
      one.softcap = 2.0;
      check(one);
    }
}

TEST(InferenceAttention, ForbiddenAndUnseenTokens) {
  Case one(3, 2, 8, 6, true);
  constexpr float kForbidden = -std::numeric_limits<float>::infinity();
  one.bias.select(2, 1).fill_(kForbidden);
  check(one);
  one.bias.fill_(kForbidden);  // nothing is left to attend to
  on_each_set([&](const InferenceKernels& use) {
    EXPECT_TRUE(testing::bit_equal(one.run(use, 1), torch::zeros({3, 16})));
  });
}

// Rows of a set read the same tokens, here with the heads of a token far from each other, and have
// the bits that each would have alone.
TEST(InferenceAttention, RowsOfASetReadTheSameTokens) {
  torch::manual_seed(testing::seed(3));
  for (const int64_t width : {1, 5, 24, 64, 80}) {
    for (const int64_t count : {1, 7, 64, 65, 200}) {
      const std::vector<int64_t> sets = {0, 1, 6, 6 + kSetRows, 9 + 2 * kSetRows};
      const int64_t rows = sets.back(), heads = 4, group = 2, kv_heads = heads / group;
      const auto query = torch::randn({rows, heads * width});
      const auto both = torch::randn({2, kv_heads, count, width});
      const auto bias = torch::randn({rows, heads, count});
      std::vector<const float*> tokens;
      for (int64_t j = 0; j < count; ++j)
        tokens.push_back(both.const_data_ptr<float>() + j * width);
      const std::vector<const float* const*> all(rows, tokens.data());
      std::vector<int64_t> counts(rows, count);
      on_each_set([&](const InferenceKernels& use) {
        std::vector<float> scratch((count + 16) * kSetRows);
        const auto run = [&](const int64_t* of_sets, int64_t items) {
          const auto out = torch::full({rows, heads * width}, 7.0F);
          AttentionRequest request = {};
          request.query = query.const_data_ptr<float>();
          request.query_stride = heads * width;
          request.heads = heads;
          request.group = group;
          request.width = width;
          request.head_stride = count * width;
          request.value = kv_heads * count * width;
          request.tokens = all.data();
          request.counts = counts.data();
          request.scale = 0.3F;
          request.bias = bias.const_data_ptr<float>();
          request.bias_row_stride = bias.stride(0);
          request.bias_head_stride = bias.stride(1);
          request.out = out.data_ptr<float>();
          request.out_stride = heads * width;
          request.sets = of_sets;
          use.attention_step.attend(request, 0, items * heads, scratch.data());
          return out;
        };
        const auto alone = run(nullptr, rows);
        EXPECT_TRUE(testing::bit_equal(run(sets.data(), std::ssize(sets) - 1), alone));
        const auto keys = both[0].repeat_interleave(group, 0),
                   values = both[1].repeat_interleave(group, 0);
        const auto q = query.view({rows, heads, width}).transpose(0, 1);
        const auto scores = torch::matmul(q, keys.transpose(1, 2)) * 0.3 + bias.transpose(0, 1);
        const auto expected = torch::matmul(scores.softmax(2), values).transpose(0, 1).flatten(1);
        EXPECT_TRUE(testing::within(Op::Sums, alone, expected));
      });
    }
  }
}

// As of silence: a chain over all tokens would round each of these terms in the same direction.
TEST(InferenceAttention, ManyEqualValues) {
  torch::manual_seed(testing::seed(5));
  for (const int64_t width : {5, 16}) {
    Case one(1, 1, width, 4000, false);
    one.query.zero_();
    one.values.fill_(0.7);
    const auto expected = one.expected();
    on_each_set([&](const InferenceKernels& use) {
      EXPECT_LT((one.run(use, 1) - expected).abs().max().item<double>(), 5e-6) << use.name;
    });
  }
}

TEST(InferenceAttention, LargeScoresDoNotOverflow) {
  Case one(2, 1, 16, 9, false);
  one.query.mul_(1e4);
  check(one);
}

}  // namespace
}  // namespace posenc::kernels::inference::attention_step_test
