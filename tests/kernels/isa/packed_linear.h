#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/isa.h"
#include "support/seed.h"

// What the tests of linear layers with packed weights share: cases, and the comparison of every
// set.

namespace posenc::testing::packed {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Case {
  int64_t rows, inner, outer;
  std::vector<float> x = {}, weight = {}, bias = {};  // rows of x are inner + 3 apart

  int64_t stride() const { return inner + 3; }
  const float* bias_or_null() const { return bias.empty() ? nullptr : bias.data(); }
};

inline bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

/// Calls f(begin, end) for parts of `split` of `count`.
template <typename F>
void in_parts(int64_t count, int64_t split, F f) {
  for (int64_t begin = 0; begin < count; begin += split) f(begin, std::min(begin + split, count));
}

/// The results (rows, outer) that run(out, stride) writes to rows that are `stride` apart.
template <typename Run>
std::vector<float> written(const Case& c, Run run) {
  const int64_t stride = c.outer + 2;
  std::vector<float> out(static_cast<size_t>(c.rows * stride), 7.0F), packed;
  run(out.data(), stride);
  for (int64_t row = 0; row < c.rows; ++row) {
    const float* const of = out.data() + row * stride;
    packed.insert(packed.end(), of, of + c.outer);
    EXPECT_TRUE(of[c.outer] == 7.0F && of[c.outer + 1] == 7.0F) << "memory beside a row changed";
  }
  return packed;
}

/// Compares run(name, split) of the sets for which takes(name) with `numbers`, bit for bit.
template <typename Run, typename Takes>
void expect_numbers(const Case& c, const std::vector<float>& numbers, Run run, Takes takes) {
  SCOPED_TRACE(std::to_string(c.rows) + " rows, " + std::to_string(c.inner) + " to " +
               std::to_string(c.outer));
  for (const std::string& name : kernels::set_names()) {
    if (!takes(name)) continue;
    for (const int64_t split : {int64_t{1}, int64_t{1} << 40}) {
      const std::vector<float> got = run(name, split);
      ASSERT_EQ(got.size(), numbers.size());
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_TRUE(same(got[i], numbers[i]))
            << name << ", element " << i << ": " << got[i] << " instead of " << numbers[i];
    }
  }
}

class Draw {
 public:
  explicit Draw(uint64_t own) : random_(seed(own)) {}

  int64_t between(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  std::vector<float> floats(int64_t n) {
    std::vector<float> all(static_cast<size_t>(n));
    for (float& x : all) x = std::normal_distribution<float>()(random_);
    return all;
  }
  /// Any bits whose exponent is one of those between.
  std::vector<float> with_exponents(int64_t n, int64_t least, int64_t most) {
    std::vector<float> all(static_cast<size_t>(n));
    for (float& x : all)
      x = std::bit_cast<float>(
          static_cast<uint32_t>(between(0, (int64_t{1} << 32) - 1) & 0x807fffff) |
          static_cast<uint32_t>(between(least, most)) << 23);
    return all;
  }
  Case one(int64_t rows, int64_t inner, int64_t outer) {
    Case c = {rows, inner, outer};
    c.x = floats(rows * c.stride());
    c.weight = floats(outer * inner);
    if (between(0, 1) == 1) c.bias = floats(outer);
    return c;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace posenc::testing::packed
