// Both matrix-multiply kernels against at::linear in float64: any shape, strides and split.

#include <ATen/ops/linear.h>

#include "kernels/isa/sets.h"
#include "support/seed.h"

namespace posenc::kernels::inference::linear_test {
namespace {

using testing::Op;

struct Case {
  torch::Tensor x, weight, bias;

  Case(int64_t rows, int64_t inner, int64_t outer, bool has_bias)
      : x(torch::randn({rows, inner + 3})), weight(torch::randn({outer, inner})) {
    if (has_bias) bias = torch::randn({outer});
  }
  int64_t rows() const { return x.size(0); }
  int64_t inner() const { return weight.size(1); }
  int64_t outer() const { return weight.size(0); }

  torch::Tensor expected() const {
    std::optional<torch::Tensor> b;
    if (bias.defined()) b = bias.to(torch::kDouble);
    return at::linear(x.narrow(1, 0, inner()).to(torch::kDouble), weight.to(torch::kDouble), b);
  }
  // Runs in parts of `split` columns. Memory next to the result must not change.
  torch::Tensor run(const LinearKernels& kernels, int64_t split) const {
    return run(kernels, split, weight.const_data_ptr<float>());
  }
  template <typename Element>
  torch::Tensor run(const LinearKernelsOf<Element>& kernels, int64_t split,
                    const Element* of_weight) const {
    const auto out = torch::full({rows(), outer() + 2}, 7.0F);
    std::vector<float> scratch(static_cast<size_t>(scratch_floats(inner())));
    const LinearRequestOf<Element> request = {
        x.const_data_ptr<float>(),
        inner() + 3,
        rows(),
        of_weight,
        bias.defined() ? bias.const_data_ptr<float>() : nullptr,
        inner(),
        outer(),
        out.data_ptr<float>(),
        outer() + 2};
    for (int64_t n = 0; n < outer(); n += split)
      kernels.run(request, n, std::min(n + split, outer()), scratch.data());
    EXPECT_TRUE((out.narrow(1, outer(), 2) == 7.0F).all().item<bool>());
    return out.narrow(1, 0, outer()).contiguous();
  }
};

void check(const Case& one, const LinearKernels& (*of)(const InferenceKernels&)) {
  SCOPED_TRACE(testing::message_of(
      [&] { TORCH_CHECK(false, one.rows(), " rows, ", one.inner(), " to ", one.outer()); }));
  const Op op = one.inner() > 100 ? Op::LongSums : Op::Sums;
  expect_on_each_set(op, one.expected(), [&](const InferenceKernels& use) {
    const auto whole = one.run(of(use), one.outer());
    EXPECT_TRUE(testing::bit_equal(one.run(of(use), 16), whole)) << "splitting changes nothing";
    return whole;
  });
}

constexpr int64_t kInner[] = {1, 2, 15, 16, 17, 50, 512};
constexpr int64_t kOuter[] = {1, 3, 4, 7, 16, 21, 40};

TEST(InferenceLinear, AFewRows) {
  torch::manual_seed(testing::seed(1));
  for (int64_t rows = 1; rows <= kFewRows; ++rows)
    for (const int64_t inner : kInner)
      for (const int64_t outer : kOuter)
        check(Case(rows, inner, outer, rows % 2 == 0),
              [](const InferenceKernels& use) -> const LinearKernels& { return use.linear_few; });
}

TEST(InferenceLinear, ManyRows) {
  torch::manual_seed(testing::seed(2));
  const auto many = [](const InferenceKernels& use) -> const LinearKernels& {
    return use.linear_many;
  };
  for (const int64_t rows : {1, 9, 16, 17, 32, 33, 47, 48, 49, 97, 150})
    for (const int64_t inner : kInner)
      for (const int64_t outer : kOuter) check(Case(rows, inner, outer, rows % 2 == 0), many);
  check(Case(packed_rows(2048) + 5, 2048, 20, true), many);  // more than one packed panel
  check(Case(packed_rows(512) + 60, 512, 20, true), many);
}

// Numbers of bfloat16, of which some are not finite, subnormal or zero.
torch::Tensor any_bfloat16(int64_t rows, int64_t columns) {
  const auto bits = torch::randint(1 << 16, {rows, columns}, torch::kInt);
  const auto any = bits.to(torch::kShort).view(torch::kBFloat16);
  return torch::where(torch::rand({rows, columns}) < 0.01, any,
                      torch::randn({rows, columns}).to(torch::kBFloat16));
}

// The bits of the same numbers in float32, those that are not finite included.
TEST(InferenceLinear, WeightsInBFloat16) {
  torch::manual_seed(testing::seed(4));
  for (const int64_t rows : {1, 2, 7, 8, 9, 17, 48, 97}) {
    for (const int64_t inner : kInner) {
      for (const int64_t outer : kOuter) {
        const auto narrow = any_bfloat16(outer, inner).contiguous();
        Case one(rows, inner, outer, outer % 2 == 0);
        one.weight = narrow.to(torch::kFloat);
        on_each_set([&](const InferenceKernels& use) {
          const bool many = rows > kFewRows;
          const auto expected = one.run(many ? use.linear_many : use.linear_few, outer);
          for (const int64_t split : {outer, int64_t{16}}) {
            const auto got =
                one.run(many ? use.linear_many_bfloat16 : use.linear_few_bfloat16, split,
                        reinterpret_cast<const BFloat16*>(narrow.const_data_ptr<at::BFloat16>()));
            EXPECT_TRUE(testing::bit_equal(got.nan_to_num(5.0), expected.nan_to_num(5.0)))
                << use.name << ": " << rows << " rows, " << inner << " to " << outer;
            EXPECT_TRUE(torch::equal(got.isnan(), expected.isnan())) << use.name;
          }
        });
      }
    }
  }
}

// The result of a row does not depend on the other rows or their number.
TEST(InferenceLinear, RowsAreIndependent) {
  torch::manual_seed(testing::seed(3));
  const Case all(100, 70, 30, true);
  Case part = all;
  part.x = all.x.narrow(0, 37, 20).contiguous();
  on_each_set([&](const InferenceKernels& use) {
    EXPECT_TRUE(testing::bit_equal(part.run(use.linear_many, 30),
                                   all.run(use.linear_many, 30).narrow(0, 37, 20).contiguous()));
    part.x = all.x.narrow(0, 37, 3).contiguous();
    Case eight = all;
    eight.x = all.x.narrow(0, 36, 8).contiguous();
    EXPECT_TRUE(testing::bit_equal(part.run(use.linear_few, 30),
                                   eight.run(use.linear_few, 30).narrow(0, 1, 3).contiguous()));
    part.x = all.x.narrow(0, 37, 20).contiguous();
  });
}

}  // namespace
}  // namespace posenc::kernels::inference::linear_test
