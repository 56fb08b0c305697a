// Products in bfloat16 against the definition in kernels/bfloat16.h, one operation at a time, bit
// for bit: any shape, stride and split, and numbers at the limits of the format.
#include "kernels/bfloat16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/isa/packed_linear.h"

namespace posenc::kernels::bfloat16 {
namespace {

using testing::packed::kInfinity;
using testing::packed::kNaN;
using Case = testing::packed::Case;
using Draw = testing::packed::Draw;

float flushed(float x) { return std::fabs(x) < 0x1p-126F ? std::copysign(0.0F, x) : x; }

float rounded(float x) {
  if (std::isnan(x)) return x;
  const auto bits = std::bit_cast<uint32_t>(flushed(x));
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000U);
}

std::vector<float> expected(const Case& c) {
  std::vector<float> out;
  for (int64_t row = 0; row < c.rows; ++row) {
    for (int64_t n = 0; n < c.outer; ++n) {
      float sum = 0.0F;
      const auto add = [&](int64_t k) {
        if (k < c.inner)
          sum = flushed(std::fma(rounded(c.x[row * c.stride() + k]),
                                 rounded(c.weight[n * c.inner + k]), sum));
      };
      for (int64_t k = 0; k < c.inner; k += 2) {
        add(k + 1);
        add(k);
      }
      out.push_back(c.bias.empty() ? sum : flushed(sum + flushed(c.bias[n])));
    }
  }
  return out;
}

std::vector<float> run(const InferenceKernels& use, const Case& c, int64_t split) {
  const int64_t blocks = padded(c.outer) / kBlock;
  std::vector<BFloat16> weight(static_cast<size_t>(weight_elements(c.inner, c.outer)), 99);
  std::vector<BFloat16> x(static_cast<size_t>(c.rows * row_elements(c.inner)), 99);
  for (int64_t row = 0; row < c.rows; ++row)
    use.round_bfloat16.round({c.x.data(), c.stride(), c.inner, x.data()}, row, row + 1);
  testing::packed::in_parts(blocks, split, [&](int64_t begin, int64_t end) {
    use.round_bfloat16.pack({c.weight.data(), c.inner, c.inner, c.outer, weight.data()}, begin,
                            end);
  });
  return testing::packed::written(c, [&](float* out, int64_t stride) {
    testing::packed::in_parts(blocks, split, [&](int64_t begin, int64_t end) {
      use.linear_bfloat16.run(
          {x.data(), c.rows, weight.data(), c.bias_or_null(), c.inner, c.outer, out, stride}, begin,
          end);
    });
  });
}

// `only_fused`: products or sums leave the range in which sets without fused multiply-add agree.
void check(const Case& c, bool only_fused = false) {
  testing::packed::expect_numbers(
      c, expected(c),
      [&](const std::string& name, int64_t split) { return run(*find_inference(name), c, split); },
      [&](const std::string& name) { return !only_fused || is_fused(*find(name)); });
}

TEST(BFloat16Kernels, HaveTheBitsOfTheDefinition) {
  Draw draw(1);
  for (int i = 0; i < 60; ++i)
    check(draw.one(draw.between(1, 40), draw.between(1, 70), draw.between(1, 90)));
  for (const int64_t rows : {1, 2, 11, 12, 13, 24, 25})
    for (const int64_t outer : {1, 15, 16, 17, 32, 48, 100})
      check(draw.one(rows, 2 * rows + 1, outer));
  check(draw.one(3, 1537, 33));
}

// Ties go to even, in either direction, and a carry may reach the exponent.
TEST(BFloat16Kernels, RoundToNearestEven) {
  Case c = {1, 1, 1};
  c.x = {0.0F, 0.0F, 0.0F, 0.0F};
  c.weight = {1.0F};
  for (const uint32_t bits : {0x3f808000U, 0x3f818000U, 0x3f808001U, 0x3f817fffU, 0x3fffffffU,
                              0xbf808000U, 0x7f7f7fffU, 0x007fffffU, 0x00800000U, 0x807fffffU}) {
    c.x[0] = std::bit_cast<float>(bits);
    check(c);
  }
}

TEST(BFloat16Kernels, FlushWhatIsBelowTheNormalNumbers) {
  Draw draw(2);
  for (int i = 0; i < 40; ++i) {
    Case c = draw.one(draw.between(1, 14), draw.between(1, 40), draw.between(1, 40));
    const int64_t middle = draw.between(2, 90);  // so that products are near 2^-126
    c.x = draw.with_exponents(c.rows * c.stride(), middle, middle + 3);
    c.weight = draw.with_exponents(c.outer * c.inner, 125 - middle, 130 - middle);
    if (!c.bias.empty()) c.bias = draw.with_exponents(c.outer, 0, 4);
    check(c, true);
  }
}

TEST(BFloat16Kernels, KeepWhatIsNotFinite) {
  Draw draw(3);
  Case c = draw.one(20, 30, 40);
  c.x[5] = kInfinity;
  c.x[c.stride() + 1] = kNaN;
  c.x[2 * c.stride()] = std::bit_cast<float>(0x7f800001U);  // whose high half alone is infinite
  c.x[3 * c.stride()] = std::numeric_limits<float>::max();  // becomes infinite
  c.weight[7] = -kInfinity;
  c.weight[3 * c.inner] = kNaN;
  check(c);
}

TEST(BFloat16Kernels, UnpackRoundedRows) {
  Draw draw(4);
  for (const int64_t inner : {1, 2, 15, 16, 17, 33, 64}) {
    const int64_t outer = draw.between(1, 50);
    std::vector<float> weight = draw.floats(outer * inner);
    weight[0] = 1e-40F;
    std::vector<int64_t> rows;
    for (int i = 0; i < 5; ++i) rows.push_back(draw.between(0, outer - 1));
    rows.push_back(0);
    for (const std::string& name : set_names()) {
      const InferenceKernels& use = *find_inference(name);
      std::vector<BFloat16> packed(static_cast<size_t>(weight_elements(inner, outer)));
      use.round_bfloat16.pack({weight.data(), inner, inner, outer, packed.data()}, 0,
                              padded(outer) / kBlock);
      std::vector<float> out(rows.size() * static_cast<size_t>(inner));
      use.round_bfloat16.unpack({packed.data(), inner, rows.data(), out.data()}, 0,
                                static_cast<int64_t>(rows.size()));
      for (size_t i = 0; i < rows.size(); ++i)
        for (int64_t k = 0; k < inner; ++k)
          ASSERT_TRUE(
              testing::packed::same(out[i * inner + k], rounded(weight[rows[i] * inner + k])))
              << name;
    }
  }
}

}  // namespace
}  // namespace posenc::kernels::bfloat16
