// Products in 8 bits against plain integers, bit for bit: any shape, stride and split, and numbers
// at the limits of the arithmetic that kernels/int8.h defines.
#include "kernels/int8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/isa/packed_linear.h"
#include "kernels/isa/plain_int8.h"

namespace posenc::kernels::int8 {
namespace {

using testing::packed::kInfinity;
using testing::packed::kNaN;
using Case = testing::packed::Case;
using Draw = testing::packed::Draw;
using plain::Kind;
using plain::plain_row;
using plain::Quantized;

using Blocks = std::vector<Quantized>;

// A row, or with a scale block its blocks.
Blocks plain_blocks(const float* x, int64_t n, Kind kind, int64_t scale_block) {
  if (scale_block == 0) return {plain_row(x, n, kind)};
  Blocks blocks;
  for (int64_t k = 0; k < n; k += scale_block)
    blocks.push_back(plain_row(x + k, std::min(scale_block, n - k), kind));
  return blocks;
}

std::vector<Blocks> plain_rows(const std::vector<float>& x, int64_t stride, int64_t inner,
                               int64_t rows, Kind kind, int64_t scale_block) {
  std::vector<Blocks> all;
  for (int64_t row = 0; row < rows; ++row)
    all.push_back(plain_blocks(x.data() + row * stride, inner, kind, scale_block));
  return all;
}

float term(const Quantized& x, const Quantized& weight) {
  int64_t sum = 0;
  for (size_t k = 0; k < x.q.size(); ++k) sum += int64_t{x.q[k] - x.zero} * weight.q[k];
  const volatile float of_weight = static_cast<float>(sum) * weight.unit;
  const volatile float product = of_weight * x.unit;
  return product;
}

std::vector<float> expected(const Case& c, int64_t scale_block) {
  const auto x = plain_rows(c.x, c.stride(), c.inner, c.rows, Kind::Input, scale_block);
  const auto weight = plain_rows(c.weight, c.inner, c.inner, c.outer, Kind::Weight, scale_block);
  std::vector<float> out;
  for (const Blocks& row : x) {
    for (int64_t n = 0; n < c.outer; ++n) {
      volatile float sum = term(row[0], weight[n][0]);
      for (size_t b = 1; b < row.size(); ++b) sum = sum + term(row[b], weight[n][b]);
      out.push_back(c.bias.empty() ? sum : sum + c.bias[n]);
    }
  }
  return out;
}

struct Packed {
  std::vector<int8_t> bytes;
  std::vector<float> units;
  std::vector<int32_t> sums;

  Packed(const InferenceKernels& use, const Case& c, int64_t scale_block, int64_t split)
      : bytes(static_cast<size_t>(weight_bytes(c.inner, c.outer)), 99),
        units(static_cast<size_t>(padded(c.outer) * scales(c.inner, scale_block)), 99.0F),
        sums(units.size(), 99) {
    testing::packed::in_parts(padded(c.outer) / kBlock, split, [&](int64_t begin, int64_t end) {
      use.quantize_int8.pack({c.weight.data(), c.inner, c.inner, c.outer, scale_block, bytes.data(),
                              units.data(), sums.data()},
                             begin, end);
    });
  }
};

std::vector<float> run(const InferenceKernels& use, const Case& c, int64_t scale_block,
                       int64_t split) {
  const Packed weight(use, c, scale_block, split);
  std::vector<uint8_t> bytes(static_cast<size_t>(c.rows * row_bytes(c.inner)), 99);
  std::vector<float> units(static_cast<size_t>(c.rows * scales(c.inner, scale_block)));
  std::vector<int32_t> zeros(units.size());
  for (int64_t row = 0; row < c.rows; ++row)
    use.quantize_int8.quantize(
        {c.x.data(), c.stride(), c.inner, scale_block, bytes.data(), units.data(), zeros.data()},
        row, row + 1);
  return testing::packed::written(c, [&](float* out, int64_t stride) {
    testing::packed::in_parts(padded(c.outer) / kBlock, split, [&](int64_t begin, int64_t end) {
      use.linear_int8.run({bytes.data(), units.data(), zeros.data(), c.rows, weight.bytes.data(),
                           weight.units.data(), weight.sums.data(), c.bias_or_null(), c.inner,
                           c.outer, scale_block, out, stride},
                          begin, end);
    });
  });
}

constexpr int64_t kScaleBlocks[] = {0, 32, 64, kMostScaleBlock};

void check(const Case& c, std::span<const int64_t> scale_blocks = kScaleBlocks) {
  for (const int64_t scale_block : scale_blocks) {
    SCOPED_TRACE("scale block " + std::to_string(scale_block));
    testing::packed::expect_numbers(
        c, expected(c, scale_block),
        [&](const std::string& name, int64_t split) {
          return run(*find_inference(name), c, scale_block, split);
        },
        [](const std::string&) { return true; });
  }
}

TEST(LinearInt8, HasTheBitsOfPlainIntegers) {
  Draw draw(1);
  for (int64_t rows = 1; rows <= 30; ++rows)
    check(draw.one(rows, draw.between(1, 300), draw.between(1, 150)));
  for (const int64_t inner : {1, 3, 4, 5, 15, 16, 17, 63, 64, 65, 127, 128, 129, 256})
    for (const int64_t outer : {1, 15, 16, 17, 63, 64, 65, 128}) check(draw.one(3, inner, outer));
  check(draw.one(200, 32, 33));
}

// All products have the same sign and the largest size, which saturates 16 bits in pairs.
TEST(LinearInt8, NothingSaturates) {
  Draw draw(2);
  for (const int64_t rows : {1, 4, 9}) {
    Case c = draw.one(rows, 300, 20);
    for (const float sign : {1.0F, -1.0F}) {
      std::fill(c.x.begin(), c.x.end(), 2.0F);
      std::fill(c.weight.begin(), c.weight.end(), sign * 3.0F);
      check(c);
    }
  }
  check({1, kMostInner, 1, std::vector<float>(kMostInner + 3, 1.0F),
         std::vector<float>(kMostInner, 1.0F)});
  check({1, kMostInner, 1, std::vector<float>(kMostInner + 3, 1.0F),
         std::vector<float>(kMostInner, -1.0F)});
}

TEST(LinearInt8, TiesRoundToEven) {
  Case c = {1, 8, 8};
  c.x = {127.0F, 0.5F, 1.5F, 2.5F, -127.0F, -1.5F, -2.5F, 126.5F, 0, 0, 0};
  c.weight.assign(64, 0.0F);
  for (int64_t n = 0; n < 8; ++n) c.weight[n * 8 + n] = 127.0F;  // each column shows one element
  check(c);
  const std::vector<float> expected = {127, 0, 2, 2, -127, -2, -2, 126};
  for (const std::string& name : set_names()) {
    const auto got = run(*find_inference(name), c, 0, 1);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i] / 127.0F, expected[i]) << name;
  }
}

// The levels of numbers of one sign are as near as those of the whole range.
TEST(LinearInt8, RowsOfOneSignHaveAllLevels) {
  for (const float sign : {1.0F, -1.0F}) {
    Case c = {1, 254, 254};
    c.x.assign(257, 0.0F);
    for (int64_t k = 0; k < 254; ++k) c.x[k] = sign * static_cast<float>(k + 1);
    c.weight.assign(254 * 254, 0.0F);
    for (int64_t n = 0; n < 254; ++n) c.weight[n * 254 + n] = 127.0F;
    check(c);
    for (const std::string& name : set_names()) {
      const auto got = run(*find_inference(name), c, 0, 1);
      for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i] / 127.0F, c.x[i]) << name;
    }
  }
}

// Where the least and the most of a row both are halfway between levels, roundings of the scale may
// make the most of them one level too many.
TEST(LinearInt8, TheLastLevelIsNotExceeded) {
  Draw draw(6);
  int exceeded = 0;
  for (int i = 0; i < 50; ++i) {
    Case c = draw.one(1, 2, 20);
    const float level = 1.0F + 0.1F * draw.floats(1)[0];
    const auto least = static_cast<float>(draw.between(1, 252)) + 0.5F;
    c.x = {-least * level, (254.0F - least) * level, 0, 0, 0};
    check(c);
    const Quantized row = plain_row(c.x.data(), 2, Kind::Input);
    const volatile float most = c.x[1] * (127.0F / (c.x[1] / 2 - c.x[0] / 2));
    if (static_cast<int>(std::nearbyint(most)) + row.zero > 127) ++exceeded;
  }
  EXPECT_GT(exceeded, 0);
}

// Rows of zeros, of subnormal numbers, around the least that is not taken for zero, with one huge
// number, and with numbers that are not finite.
TEST(LinearInt8, UnusualRows) {
  Draw draw(3);
  const float unusual[] = {0.0F,    -0.0F,    1e-40F, 0x1p-100F, 0x1.fffffep-101F, 0x1p-126F,
                           3.4e38F, -3.4e38F, kNaN,   kInfinity, -kInfinity,       1e30F};
  for (const float value : unusual) {
    SCOPED_TRACE(value);
    for (const bool whole : {false, true}) {
      Case c = draw.one(9, draw.between(1, 200), draw.between(1, 40));
      const int64_t row = draw.between(0, 8);
      const auto of_row = c.x.begin() + row * c.stride();
      if (whole) {  // and, of a row that is longer, its second block alone
        std::fill(of_row + (c.inner > 130 ? 64 : 0), of_row + std::min<int64_t>(c.inner, 128),
                  value);
      } else {
        of_row[draw.between(0, c.inner - 1)] = value;
      }
      check(c);
      Case of_weight = draw.one(9, draw.between(1, 200), draw.between(1, 40));
      const auto column =
          of_weight.weight.begin() + draw.between(0, of_weight.outer - 1) * of_weight.inner;
      if (whole) {
        std::fill(column, column + std::min<int64_t>(of_weight.inner, 64), value);
      } else {
        column[draw.between(0, of_weight.inner - 1)] = value;
      }
      check(of_weight);
    }
  }
}

TEST(LinearInt8, ValuesThatAreNotFiniteStayInTheirRow) {
  Draw draw(4);
  for (const float value : {kNaN, kInfinity}) {
    Case c = draw.one(20, 140, 30);
    c.x[7 * c.stride() + 70] = value;
    for (const std::string& name : set_names()) {
      for (const int64_t scale_block : kScaleBlocks) {
        const auto out = run(*find_inference(name), c, scale_block, 1);
        for (int64_t i = 0; i < 20 * 30; ++i)
          EXPECT_EQ(std::isnan(out[i]), i / 30 == 7) << name << ", " << scale_block;
      }
    }
  }
}

// The products of a row of one block are those with a scale for the row; only those of rows with
// one outlier in another block differ, by being nearer.
TEST(LinearInt8, BlocksKeepAnOutlierToThemselves) {
  Draw draw(7);
  Case c = draw.one(5, 256, 40);
  const auto error = [&](int64_t scale_block) {
    const auto got = run(*find_inference("generic"), c, scale_block, 1);
    double sum = 0.0;
    for (int64_t row = 0; row < c.rows; ++row) {
      for (int64_t n = 0; n < c.outer; ++n) {
        double exact = c.bias.empty() ? 0.0 : c.bias[n];
        for (int64_t k = 0; k < c.inner; ++k)
          exact += double{c.x[row * c.stride() + k]} * c.weight[n * c.inner + k];
        sum += std::abs(got[row * c.outer + n] - exact);
      }
    }
    return sum;
  };
  for (int64_t row = 0; row < c.rows; ++row) c.x[row * c.stride() + 200] = 100.0F;
  for (int64_t n = 0; n < c.outer; ++n) c.weight[n * c.inner + 200] = 0.0F;
  EXPECT_LT(error(128), 0.8 * error(0));
  EXPECT_LT(error(64), 0.8 * error(128));
  Case narrow = draw.one(5, 64, 40);
  EXPECT_EQ(run(*find_inference("generic"), narrow, 64, 1),
            run(*find_inference("generic"), narrow, 0, 1));
}

TEST(PackInt8, RowsAreUnpacked) {
  Draw draw(5);
  for (int i = 0; i < 20; ++i) {
    const Case c = draw.one(1, draw.between(1, 300), draw.between(1, 100));
    const int64_t scale_block = kScaleBlocks[i % 4];
    const auto rows = plain_rows(c.weight, c.inner, c.inner, c.outer, Kind::Weight, scale_block);
    std::vector<int64_t> ids;
    for (int j = 0; j < 7; ++j) ids.push_back(draw.between(0, c.outer - 1));
    for (const std::string& name : set_names()) {
      const InferenceKernels& use = *find_inference(name);
      const Packed packed(use, c, scale_block, 1);
      std::vector<float> out(static_cast<size_t>(7 * c.inner)), expected;
      use.quantize_int8.unpack(
          {packed.bytes.data(), packed.units.data(), c.inner, scale_block, ids.data(), out.data()},
          0, 7);
      for (const int64_t id : ids)
        for (const Quantized& block : rows[id])
          for (const int q : block.q) expected.push_back(static_cast<float>(q) * block.unit);
      EXPECT_EQ(out, expected) << name << ", scale block " << scale_block;
    }
  }
}

}  // namespace
}  // namespace posenc::kernels::int8
