#include "posenc/positions/functional/positional_encoding.h"

#include <gtest/gtest.h>

#include "posenc/positions/sinusoid/table.h"
#include "support/compare.h"
#include "support/devices.h"

namespace posenc::functional::positional_encoding_test {
namespace {

using posenc::testing::bit_equal;
using posenc::testing::OnEachDevice;
using How = PositionalEncodingFuncOptions;

class PositionalEncoding : public OnEachDevice {
 protected:
  torch::Tensor table() const {
    return sinusoid_table(SinusoidOptions(6), 20, torch::TensorOptions(device()));
  }
  torch::Tensor randn(std::vector<int64_t> shape) const { return torch::randn(shape).to(device()); }
  torch::Tensor ids(torch::Tensor values) const { return values.to(device()); }
};
POSENC_ON_EACH_DEVICE(PositionalEncoding);

TEST_P(PositionalEncoding, AddsTheFirstRows) {
  const auto x = randn({3, 7, 6});
  const auto expected = x + table().slice(0, 0, 7);
  EXPECT_TRUE(bit_equal(positional_encoding(x, table()), expected));
  EXPECT_TRUE(bit_equal(positional_encoding(x, table().unsqueeze(0)), expected));
  EXPECT_TRUE(bit_equal(positional_encoding(x[1], table()), expected[1]));
}

TEST_P(PositionalEncoding, SequenceFirstIsTheTranspose) {
  const auto x = randn({3, 7, 6});
  const auto expected = positional_encoding(x, table(), How().offset(2));
  const auto turned =
      positional_encoding(x.transpose(0, 1), table(), How().offset(2).batch_first(false));
  EXPECT_TRUE(bit_equal(turned.transpose(0, 1).contiguous(), expected));
  EXPECT_TRUE(bit_equal(positional_encoding(x[0], table(), How().batch_first(false)),
                        positional_encoding(x[0], table())));
}

TEST_P(PositionalEncoding, IncrementalEqualsFull) {
  const auto x = randn({2, 20, 6});
  const auto full = positional_encoding(x, table());
  for (int64_t p = 0; p < 20; ++p) {
    EXPECT_TRUE(bit_equal(positional_encoding(x.slice(1, p, p + 1), table(), How().offset(p)),
                          full.slice(1, p, p + 1)));
  }
}

TEST_P(PositionalEncoding, ExplicitPositionsMayBeSharedOrOnePerRow) {
  const auto x = randn({2, 3, 6});
  const auto one = ids(torch::tensor({19, 0, 4}));
  const auto shared = positional_encoding(x, table(), How().position_ids(one));
  EXPECT_TRUE(bit_equal(shared, x + table().index_select(0, one)));
  const auto each = ids(torch::tensor({{19, 0, 4}, {5, 5, 5}}));
  const auto own = positional_encoding(x, table(), How().position_ids(each));
  EXPECT_TRUE(bit_equal(own[0], shared[0]));
  EXPECT_TRUE(bit_equal(own[1], x[1] + table()[5]));
  // (L, B, D): ids in the layout of x
  const auto first = How().batch_first(false);
  const auto turned =
      positional_encoding(x.transpose(0, 1), table(), How(first).position_ids(each.t()));
  EXPECT_TRUE(bit_equal(turned.transpose(0, 1).contiguous(), own));
  const auto turned_one =
      positional_encoding(x.transpose(0, 1), table(), How(first).position_ids(one));
  EXPECT_TRUE(bit_equal(turned_one.transpose(0, 1).contiguous(), shared));
}

TEST_P(PositionalEncoding, TakesEmptySequencesAndFullTables) {
  EXPECT_EQ(positional_encoding(randn({2, 0, 6}), table()).sizes(),
            (std::vector<int64_t>{2, 0, 6}));
  EXPECT_EQ(positional_encoding(randn({2, 20, 6}), table()).size(1), 20);
  EXPECT_EQ(positional_encoding(randn({1, 1, 6}), table(), How().offset(19)).size(1), 1);
}

TEST_P(PositionalEncoding, GradientPassesThrough) {
  auto x = randn({2, 3, 6}).requires_grad_(true);
  const auto cotangent = randn({2, 3, 6});
  (positional_encoding(x, table()) * cotangent).sum().backward();
  EXPECT_TRUE(bit_equal(x.grad(), cotangent));
}

TEST(PositionalEncodingErrors, NameTheRuleAndTheValue) {
  const auto table = sinusoid_table(SinusoidOptions(6), 20);
  const auto x = torch::randn({2, 5, 6});
  EXPECT_ERROR(positional_encoding(torch::randn({2, 21, 6}), table), c10::ValueError,
               "[PositionalEncoding] sequence length 21 exceeds max_len 20; pass .grow(true)");
  EXPECT_ERROR(positional_encoding(x, table, How().offset(16)), c10::ValueError,
               "sequence length 5 at offset 16 exceeds max_len 20");
  EXPECT_ERROR(positional_encoding(x, table, How().offset(INT64_MAX)), c10::ValueError,
               "exceeds max_len 20");
  EXPECT_ERROR(positional_encoding(x, table, How().offset(-1)), c10::ValueError,
               "offset must not be negative. Got -1");
  EXPECT_ERROR(positional_encoding(torch::randn({5, 4}), table), c10::ValueError,
               "x must have d_model 6 in its last axis. Got [5, 4]");
  EXPECT_ERROR(positional_encoding(torch::randn({6}), table), c10::ValueError,
               "x must be (B, L, D) or (L, D). Got [6]");
  EXPECT_ERROR(positional_encoding(torch::randn({1, 2, 5, 6}), table), c10::ValueError,
               "x must be (B, L, D) or (L, D). Got [1, 2, 5, 6]");
  EXPECT_ERROR(positional_encoding(x.to(torch::kLong), table), c10::TypeError,
               "x must be real-valued. Got Long");
  EXPECT_ERROR(positional_encoding(x, torch::randn({2, 20, 6})), c10::ValueError,
               "table must be (rows, D) or (1, rows, D). Got [2, 20, 6]");
  EXPECT_ERROR(positional_encoding(x, table, How().position_ids(torch::arange(4))), c10::ValueError,
               "position_ids must be (L) = [5] or, as x is laid out, [2, 5]. Got [4]");
  EXPECT_ERROR(positional_encoding(x, table, How().position_ids(torch::arange(5)).offset(1)),
               c10::ValueError, "offset must be 0 beside them. Got 1");
  EXPECT_ERROR(positional_encoding(x, table, How().position_ids(torch::tensor({0, 1, 2, 3, 20}))),
               c10::IndexError,
               "every position must lie in [0, max_len) = [0, 20). Got 20 at index [4]");
  EXPECT_ERROR(positional_encoding(x, table, How().position_ids(torch::tensor({0, 1, -2, 3, 4}))),
               c10::IndexError, "Got -2 at index [2]");
  EXPECT_ERROR(position_embedding(torch::tensor({0.5}), table), c10::TypeError,
               "positions must be integers");
}

}  // namespace
}  // namespace posenc::functional::positional_encoding_test
