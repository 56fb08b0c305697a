// The kernel of the embeddings of encoders: its norm against at::layer_norm, and in the rounding
// that ATen does not use on this processor, against the same algorithm one element at a time; its
// sums and its dropout against ATen's operations.
#include "kernels/embed.h"

#include <ATen/Version.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/isa/sets.h"
#include "support/compare.h"
#include "support/dice.h"

namespace posenc::kernels::embed {
namespace {

using inference::on_each_set;
using posenc::testing::bit_equal;
using posenc::testing::Dice;

constexpr NormRounding kRoundings[] = {NormRounding::Fused, NormRounding::Separate};

// Runs the kernel over all tokens of `q`, a few at a time.
void run(const Kernels& use, NormRounding rounding, const EmbedRequest& q, int64_t split) {
  for (int64_t begin = 0; begin < q.tokens; begin += split)
    use.embeddings.embeddings[static_cast<int>(rounding)](q, begin,
                                                          std::min(q.tokens, begin + split));
}

bool has(const Kernels& use, NormRounding rounding) {
  return use.embeddings.embeddings[static_cast<int>(rounding)] != nullptr;
}

// The rows of `x`, as tokens 0, 1, 2, ... of a table.
struct RowsOf {
  explicit RowsOf(const torch::Tensor& x) : ids(torch::arange(x.size(0))) {
    q.ids = {ids.const_data_ptr(), /*wide=*/true};
    q.tokens = x.size(0);
    q.weight = x.const_data_ptr<float>();
    q.weight_stride = q.dim = x.size(1);
  }
  torch::Tensor ids;
  EmbedRequest q;
};

struct Normed {
  torch::Tensor y, sum, mean, rstd;
};

Normed normed(const Kernels& use, NormRounding rounding, const torch::Tensor& x,
              const torch::Tensor& weight, const torch::Tensor& bias, double eps, bool keep) {
  RowsOf rows(x);
  Normed n = {torch::empty_like(x), torch::empty_like(x), torch::empty({x.size(0), 1}),
              torch::empty({x.size(0), 1})};
  rows.q.norm.weight = weight.const_data_ptr<float>();
  if (bias.defined()) rows.q.norm.bias = bias.const_data_ptr<float>();
  rows.q.norm.eps = static_cast<float>(eps);
  if (keep) {
    rows.q.norm.sum = n.sum.data_ptr<float>();
    rows.q.norm.mean = n.mean.data_ptr<float>();
    rows.q.norm.rstd = n.rstd.data_ptr<float>();
  }
  rows.q.out = n.y.data_ptr<float>();
  run(use, rounding, rows.q, keep ? rows.q.tokens : 5);
  return n;
}

// Rows of very different sizes, some without any variance.
torch::Tensor uneven_rows(int64_t rows, int64_t width) {
  auto x = torch::randn({rows, width}) * torch::randn({rows, 1}).mul(3).exp() +
           torch::randn({rows, 1}).mul(5);
  x[rows / 2].fill_(2.5);
  x[0].fill_(-0.0);
  return x;
}

std::vector<int64_t> widths(Dice& dice) {
  std::vector<int64_t> all = {1,   3,   7,   8,   9,   64,  96,  127,  128,  129,  200,
                              256, 300, 384, 512, 520, 768, 769, 1024, 1027, 2048, 8200};
  for (int i = 0; i < 8; ++i) all.push_back(1 + dice.below(4000));
  all.push_back(kEmbeddingsWidest);
  return all;
}

// The expected result of the kernel for a row, computed one lane at a time.
struct Lane {
  float mean = 0, squares = 0;
};
struct Scalar {
  bool fused;
  float madd(float a, float b, float c) const { return fused ? std::fma(a, b, c) : a * b + c; }
  void merge(int64_t added, const Lane& more, int64_t& count, Lane& to) const {
    const int64_t all = count + added;
    const float share = all == 0 ? 0 : static_cast<float>(added) / static_cast<float>(all);
    const float away = more.mean - to.mean, part = share * away;
    to.squares = madd(away * static_cast<float>(count), part, to.squares + more.squares);
    to.mean = to.mean + part;
    count = all;
  }
  // Lane `lane` of the row: chunks, and their merges.
  Lane lane(const float* x, int64_t vectors, int64_t lane) const {
    const int64_t chunks = (vectors + 15) / 16;
    int64_t depth = 0;
    while ((int64_t{1} << depth) < chunks) ++depth;
    std::vector<Lane> levels(64);
    std::vector<int64_t> counts(64);
    for (int64_t i = 0; i < chunks; ++i) {
      Lane chunk;
      const int64_t n = std::min<int64_t>(16, vectors - 16 * i);
      for (int64_t j = 0; j < n; ++j) {
        const float value = x[(16 * i + j) * 8 + lane], away = value - chunk.mean;
        chunk.mean = madd(1.0f / static_cast<float>(j + 1), away, chunk.mean);
        chunk.squares = madd(away, value - chunk.mean, chunk.squares);
      }
      merge(n, chunk, counts[0], levels[0]);
      for (int64_t level = 1, mask = i + 1; level < depth && mask % 2 == 0; ++level, mask /= 2) {
        const auto l = static_cast<size_t>(level);
        merge(counts[l - 1], levels[l - 1], counts[l], levels[l]);
        counts[l - 1] = 0;
        levels[l - 1] = {};
      }
    }
    for (size_t level = 1; level < static_cast<size_t>(depth); ++level)
      merge(counts[level], levels[level], counts[0], levels[0]);
    return levels[0];
  }
  std::pair<float, float> mean_and_rstd(const float* x, int64_t width, float eps) const {
    const int64_t vectors = width / 8;
    Lane row;
    int64_t count = 0;
    for (int64_t i = 8 * vectors; i < width; ++i) {
      const float away = x[i] - row.mean;
      row.mean = row.mean + away / static_cast<float>(++count);
      row.squares = row.squares + away * (x[i] - row.mean);
    }
    for (int64_t l = 0; l < 8; ++l) {
      const Lane more = lane(x, vectors, l);
      const int64_t all = count + vectors;
      const float share = all == 0 ? 0 : static_cast<float>(vectors) / static_cast<float>(all);
      const float away = more.mean - row.mean;
      row.mean = madd(share, away, row.mean);
      row.squares =
          row.squares + madd(away * away * share, static_cast<float>(count), more.squares);
      count = all;
    }
    const float variance = row.squares / static_cast<float>(width);
    return {row.mean, 1.0f / std::sqrt(std::max(variance, 0.0f) + eps)};
  }
};

TEST(EmbeddingsKernel, NormsInBothRoundingsOnEachInstructionSet) {
  Dice dice(3);
  torch::manual_seed(testing::seed(3));
  for (const int64_t width : widths(dice)) {
    const auto x = uneven_rows(3, width), weight = torch::randn({width}),
               bias = torch::randn({width});
    for (const NormRounding rounding : kRoundings) {
      const Scalar scalar = {rounding == NormRounding::Fused};
      auto expected = torch::empty_like(x);
      for (int64_t r = 0; r < 3; ++r) {
        const float* const row = x.const_data_ptr<float>() + r * width;
        const auto [mean, rstd] = scalar.mean_and_rstd(row, width, 1e-6f);
        for (int64_t j = 0; j < width; ++j)
          expected.data_ptr<float>()[r * width + j] =
              scalar.madd((row[j] - mean) * rstd, weight.const_data_ptr<float>()[j],
                          bias.const_data_ptr<float>()[j]);
      }
      on_each_set([&](const Kernels& use) {
        if (!has(use, rounding)) return;
        EXPECT_TRUE(bit_equal(normed(use, rounding, x, weight, bias, 1e-6, false).y, expected))
            << "width " << width << (scalar.fused ? " fused" : " separate");
      });
    }
  }
}

TEST(EmbeddingsKernel, HasTheBitsOfATensNorm) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "ATen's norm adds in another order here; functional::norm_rounding() finds out";
#endif
  const NormRounding rounding =
      at::get_cpu_capability() == "DEFAULT" ? NormRounding::Separate : NormRounding::Fused;
  Dice dice(4);
  torch::manual_seed(testing::seed(4));
  for (const int64_t width : widths(dice)) {
    const auto x = uneven_rows(1 + dice.below(20), width), weight = torch::randn({width});
    const auto bias = dice.coin() ? torch::randn({width}) : torch::Tensor();
    const double eps = dice.any({1e-12, 1e-5, 0.3});
    const auto [y, mean, rstd] = torch::native_layer_norm(x, {width}, weight, bias, eps);
    // clang 14 captures structured bindings by name only.
    on_each_set([&, &y = y, &mean = mean, &rstd = rstd](const Kernels& use) {
      if (!has(use, rounding)) return;
      SCOPED_TRACE(c10::str("rows ", x.sizes(), " bias ", bias.defined(), " eps ", eps));
      EXPECT_TRUE(bit_equal(normed(use, rounding, x, weight, bias, eps, false).y, y));
      const Normed kept = normed(use, rounding, x, weight, bias, eps, true);
      EXPECT_TRUE(bit_equal(kept.y, y));
      EXPECT_TRUE(bit_equal(kept.sum, x));
      EXPECT_TRUE(bit_equal(kept.mean, mean));
      EXPECT_TRUE(bit_equal(kept.rstd, rstd));
    });
  }
}

// Infinities, NaN and overflows occur in the same places as in ATen's norm.
TEST(EmbeddingsKernel, NormsRowsThatAreNotFiniteAsATenDoes) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "ATen's norm adds in another order here; functional::norm_rounding() finds out";
#endif
  const NormRounding rounding =
      at::get_cpu_capability() == "DEFAULT" ? NormRounding::Separate : NormRounding::Fused;
  for (const int64_t width : {5, 133, 768}) {
    auto x = torch::randn({6, width});
    x[0][width / 2] = std::numeric_limits<float>::infinity();
    x[1][width - 1] = std::numeric_limits<float>::quiet_NaN();
    x[2].fill_(3e38);
    x[3].slice(0, 0, width / 2).fill_(3e38);
    x[3].slice(0, width / 2).fill_(-3e38);
    x[4].fill_(1e-42);
    const auto weight = torch::randn({width}), bias = torch::randn({width});
    const auto expected = torch::layer_norm(x, {width}, weight, bias, 1e-5);
    on_each_set([&](const Kernels& use) {
      if (!has(use, rounding)) return;
      const auto y = normed(use, rounding, x, weight, bias, 1e-5, false).y;
      EXPECT_TRUE(torch::equal(y.isnan(), expected.isnan())) << width;
      EXPECT_TRUE(bit_equal(y.nan_to_num(7.0), expected.nan_to_num(7.0))) << width;
    });
  }
}

TEST(EmbeddingsKernel, AddsRowsInTheirOrderAndDrops) {
  Dice dice(5);
  torch::manual_seed(testing::seed(5));
  for (int i = 0; i < 60; ++i) {
    const int64_t dim = dice.any<int64_t>({1, 5, 16, 31, 33, 96, 768}), tokens = 1 + dice.below(30),
                  rows = 1 + dice.below(12), pad = dice.below(3);
    const auto weight = torch::randn({rows, dim + pad});
    const auto ids = torch::randint(0, rows, {tokens});
    const auto narrow = ids.to(torch::kInt);
    EmbedRequest q;
    q.ids = {dice.coin() ? ids.const_data_ptr() : nullptr, true};
    if (q.ids.data == nullptr) q.ids = {narrow.const_data_ptr(), false};
    q.tokens = tokens;
    q.weight = weight.const_data_ptr<float>();
    q.weight_stride = dim + pad;
    q.dim = dim;
    q.scale = dice.any({1.0f, 27.71f, 0.3f});
    auto x = weight.slice(1, 0, dim).index_select(0, ids) * q.scale;
    std::vector<torch::Tensor> held;
    const int64_t tables = dice.below(kEmbeddingsTables + 1);
    for (q.tables = 0; q.tables < tables; ++q.tables) {
      AddedRows& p = q.added[q.tables];
      p.count = 1 + dice.below(tokens);
      const auto table = torch::randn({p.count + 4, dim});
      auto where = torch::randint(0, p.count + 4, {p.count});
      p.table = table.const_data_ptr();
      p.stride = dim;
      p.offset = dice.below(4);
      p.ids = {nullptr, false};
      p.divide = 1;
      if (dice.coin()) {
        p.ids = {where.const_data_ptr(), true};
      } else {
        where = torch::arange(p.offset, p.offset + p.count);
      }
      x = x + table.index_select(0, where.index_select(0, torch::arange(tokens) % p.count));
      held.insert(held.end(), {table, where});
    }
    const auto bits = torch::randint(0, 256, {tokens * dim / 8 + 9}, torch::kByte);
    if (dice.coin()) {
      q.kept = {bits.const_data_ptr<uint8_t>(), 1.0f / 0.7f};
      const auto at = torch::arange(tokens * dim);
      const auto kept = bits.index_select(0, at.div(8, "floor")).bitwise_right_shift(at % 8) & 1;
      x = x * (kept.to(torch::kFloat) * (1.0f / 0.7f)).view_as(x);
    }
    on_each_set([&](const Kernels& use) {
      const auto out = torch::full_like(x, 7.0);
      q.out = out.data_ptr<float>();
      run(use, NormRounding::Separate, q, 1 + dice.below(tokens));
      EXPECT_TRUE(bit_equal(out, x)) << "case " << i << " dim " << dim << " tables " << q.tables;
    });
  }
}

}  // namespace
}  // namespace posenc::kernels::embed
