// rotary_out() into memory that overlaps another input or output: the result must be that for
// separate tensors, so the fused rotation has to leave each such case to the composition.

#include <gtest/gtest.h>
#include <torch/utils.h>

#include "posenc/positions/functional/rotary.h"
#include "support/compare.h"

namespace posenc::functional::rotary_out_test {
namespace {

using posenc::testing::bit_equal;
using rotary::HeadAxis;

constexpr int64_t kHeads = 2, kLength = 1200, kWidth = 8;

struct RotaryOut : ::testing::TestWithParam<rotary::Pairing> {
  RotaryOptions options{kWidth, GetParam()};
  torch::Tensor q = torch::randn({1, kHeads, kLength, kWidth});
  torch::Tensor k = torch::randn({1, kHeads, kLength, kWidth});
  RotaryCosSin table{torch::randn({kLength, kWidth}), torch::randn({kLength, kWidth})};
  RotaryFuncOptions how;

  void SetUp() override { how.head_axis(HeadAxis::BeforeLength); }

  // Copies `values` to the place of `count` numbers after the first `start` of `memory`.
  static torch::Tensor placed(const torch::Tensor& memory, int64_t start,
                              const torch::Tensor& values) {
    return memory.slice(0, start, start + values.numel()).view(values.sizes()).copy_(values);
  }
  static torch::Tensor memory() { return torch::zeros({60000}); }

  // The expected result is computed first, from copies of all tensors.
  void expect_same(const torch::Tensor& q_out, const torch::Tensor& k_out) {
    const auto copy = [](const torch::Tensor& t) { return t.defined() ? t.clone() : t; };
    const auto [want_q, want_k] =
        rotary(copy(q), copy(k), {table.cos.clone(), table.sin.clone()}, options,
               RotaryFuncOptions(how).position_ids(copy(how.position_ids())));
    rotary_out(q_out, k_out, q, k, table, options, how);
    if (k_out.defined()) {
      EXPECT_TRUE(bit_equal(k_out, want_k)) << "k";
    }
    if (!k_out.defined() || !q_out.is_alias_of(k_out)) {  // the later of two in one place stays
      EXPECT_TRUE(bit_equal(q_out, want_q)) << "q";
    }
  }
};

TEST_P(RotaryOut, MayHoldTheFactors) {
  for (at::Tensor RotaryCosSin::*const factor : {&RotaryCosSin::cos, &RotaryCosSin::sin}) {
    for (const int64_t start : {0, 8, 40}) {
      const auto all = memory();
      const auto before = table;
      table.*factor = placed(all, start, table.*factor);
      expect_same(all.slice(0, 8, 8 + q.numel()).view(q.sizes()), torch::empty_like(k));
      table = before;
    }
  }
}

TEST_P(RotaryOut, MayHoldThePositions) {
  for (const int64_t start : {0, 2, 40}) {
    const auto all = memory();
    const auto ids = torch::randint(kLength, {kLength}, torch::kLong);
    how.position_ids(all.slice(0, start, start + 2 * kLength).view(torch::kLong).copy_(ids));
    expect_same(all.slice(0, 0, q.numel()).view(q.sizes()), torch::empty_like(k));
  }
}

TEST_P(RotaryOut, MayHoldTheOtherInput) {
  const auto all = memory();
  k = placed(all, 8, k);
  expect_same(all.slice(0, 0, q.numel()).view(q.sizes()), torch::empty_like(k));
  q = placed(all, 8, q);
  k = torch::randn({1, kHeads, kLength, kWidth});
  expect_same(torch::empty_like(q), all.slice(0, 16, 16 + k.numel()).view(k.sizes()));
}

TEST_P(RotaryOut, MayHoldTheOtherResult) {
  const auto all = memory();
  expect_same(all.slice(0, 24, 24 + q.numel()).view(q.sizes()),
              all.slice(0, 0, k.numel()).view(k.sizes()));
}

TEST_P(RotaryOut, MayBeTheInputInAnotherPlaceOrOrder) {
  const auto all = memory();
  q = placed(all, 0, q);
  expect_same(all.slice(0, 8, 8 + q.numel()).view(q.sizes()), torch::empty_like(k));

  // The same memory, with heads and tokens swapped.
  const auto square = torch::randn({1, 4, 4, kWidth});
  q = square, k = torch::Tensor();
  table = {torch::randn({4, kWidth}), torch::randn({4, kWidth})};
  expect_same(square.transpose(1, 2), {});
}

TEST_P(RotaryOut, MayHoldTheTokensThatPassUnchanged) {
  how.prefix_tokens(3);
  table = {table.cos.slice(0, 3).clone(), table.sin.slice(0, 3).clone()};
  expect_same(torch::empty_like(q), torch::empty_like(k));
  const auto q_before = q.clone(), k_before = k.clone();
  expect_same(k, q);  // change places
  const auto all = memory();
  q = placed(all, 0, q_before), k = k_before.clone();
  expect_same(all.slice(0, 8, 8 + q.numel()).view(q.sizes()), k);
}

TEST_P(RotaryOut, MayHaveGapsBetweenChannels) {
  expect_same(torch::zeros({1, kHeads, kLength, 2 * kWidth}).slice(-1, 0, 2 * kWidth, 2),
              torch::empty_like(k));
}

// Queries and keys of one projection are written in place; if their channels overlap, they are not
// side by side.
TEST_P(RotaryOut, MayOverlapInTheRowsOfAProjection) {
  constexpr int64_t kSpan = kHeads * kWidth, kRow = 3 * kSpan;
  how.head_axis(HeadAxis::AfterLength);
  for (const int64_t start : {kSpan, kWidth, int64_t{4}, 2 * kSpan + 4}) {
    const auto rows = torch::randn({1, kLength + 1, kRow}).slice(1, 0, kLength);
    const auto part = [&](int64_t from) {
      return rows.as_strided({1, kLength, kHeads, kWidth}, {rows.stride(0), kRow, kWidth, 1}, from);
    };
    q = part(0), k = part(start);
    expect_same(q, torch::empty({1, kLength, kHeads, kWidth}));
    if (start == kSpan) expect_same(q, k);
  }
}

INSTANTIATE_TEST_SUITE_P(Pairings, RotaryOut,
                         ::testing::Values(rotary::Pairing::Halves, rotary::Pairing::Adjacent,
                                           rotary::Pairing::AdjacentToHalves));

}  // namespace
}  // namespace posenc::functional::rotary_out_test
