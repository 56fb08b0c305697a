// Millions of entries against MPFR at 320 bits: none may be misrounded. One case covers all of 5000
// x 512.
#include <gtest/gtest.h>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "positions/sinusoid/exact/mpfr_reference.h"
#include "positions/sinusoid/exact/table_writer.h"
#include "support/exhaustive.h"
#include "support/seed.h"

namespace posenc::exact {
namespace {

namespace reference = posenc::testing::reference;

int64_t checked = 0, wrong = 0, ziv_fallback = 0;

double value_of(const void* data, int64_t i, Format format) {
  if (format == Format::Float64) return static_cast<const double*>(data)[i];
  if (format == Format::Float32) return static_cast<double>(static_cast<const float*>(data)[i]);
  const uint16_t h = static_cast<const uint16_t*>(data)[i];
  if (format == Format::BFloat16) {
    const uint32_t bits = static_cast<uint32_t>(h) << 16;
    float f;
    memcpy(&f, &bits, 4);
    return static_cast<double>(f);
  }
  const int exponent = h >> 10 & 31;
  const double m =
      exponent == 0 ? (h & 1023) * 0x1p-24 : std::ldexp(1024 + (h & 1023), exponent - 25);
  return h & 0x8000 ? -m : m;
}

void expect(double got, double want, const char* what, int64_t k, double position) {
  ++checked;
  if (got == want && std::signbit(got) == std::signbit(want)) return;
  if (++wrong <= 20)
    ADD_FAILURE() << what << " k " << k << " position " << position << ": got " << got << ", not "
                  << want;
}

RowLayout interleaved(int64_t n) {
  RowLayout l;
  l.sin_count = l.cos_count = n;
  l.row_stride = 2 * n;
  return l;
}

// Random positions in several ranges, with all frequencies of a few rows, or some of many rows.
void sampled(const char* what, const FrequencySpec& spec, Format format, int64_t pairs,
             std::mt19937_64& random, bool real, double limit) {
  const Frequencies f(spec);
  reference::Sinusoid oracle(spec);
  const int64_t rows = 512;
  std::vector<int64_t> integers(rows);
  std::vector<double> reals(rows);
  std::vector<double> table(static_cast<size_t>(rows * 2 * spec.count));
  Destination to{table.data(), interleaved(spec.count), false};
  const FactoredRows factored(f, 100000, format);
  int64_t left = pairs;
  for (int round = 0; left > 0; ++round) {
    for (int64_t r = 0; r < rows; ++r) {
      const double top = round % 3 == 0 ? 5000.0 : round % 3 == 1 ? 1e6 : 2147483647.0;
      const double x =
          std::uniform_real_distribution<double>(-1.0, 1.0)(random) * std::min(top, limit);
      reals[static_cast<size_t>(r)] = round % 5 == 4 ? x * 1e-7 : x;
      integers[static_cast<size_t>(r)] =
          round % 3 == 2 && r < 8
              ? (r % 2 ? -1 : 1) * (INT64_C(2147483647) - r)
              : static_cast<int64_t>(std::llround(round % 7 == 6 ? x : std::fabs(x)));
    }
    Positions p;
    if (real)
      p.reals = reals.data();
    else
      p.integers = integers.data();
    if (round % 2 == 1)
      factored.write(p, 0, rows, to);
    else
      TableWriter(f, p, rows, format).write(0, rows, to);
    for (int64_t i = 0; i < rows * 32 && left > 0; ++i, --left) {
      const int64_t r = static_cast<int64_t>(random() % static_cast<uint64_t>(rows));
      const int64_t k = static_cast<int64_t>(random() % static_cast<uint64_t>(spec.count));
      const double position = real ? reals[static_cast<size_t>(r)]
                                   : static_cast<double>(integers[static_cast<size_t>(r)]);
      double s, c;
      oracle.at(k, position, format, &s, &c);
      expect(value_of(table.data(), (r * spec.count + k) * 2, format),
             s == 0 && position == 0 ? 0.0 : s, what, k, position);
      expect(value_of(table.data(), (r * spec.count + k) * 2 + 1, format), c, what, k, position);
    }
  }
  ziv_fallback += f.decided();
}

void whole_table(int64_t length, int64_t dim, Format format, const char* what) {
  FrequencySpec spec;
  spec.denominator = dim;
  spec.count = dim / 2;
  const Frequencies f(spec);
  reference::Sinusoid oracle(spec);
  std::vector<double> table(static_cast<size_t>(length * dim));
  Destination to{table.data(), interleaved(spec.count), false};
  TableWriter(f, Positions{}, length, format).write(0, length, to);
  for (int64_t p = 0; p < length; ++p) {
    for (int64_t k = 0; k < spec.count; ++k) {
      double s, c;
      oracle.at(k, static_cast<double>(p), format, &s, &c);
      expect(value_of(table.data(), (p * spec.count + k) * 2, format), s, what, k,
             static_cast<double>(p));
      expect(value_of(table.data(), (p * spec.count + k) * 2 + 1, format), c, what, k,
             static_cast<double>(p));
    }
  }
}

}  // namespace

TEST(ExactMpfr, EveryEntryOfALargeTable) {
  whole_table(5000, 512, Format::Float32, "5000x512 float32");
  whole_table(300, 512, Format::Float64, "300x512 float64");
  whole_table(300, 512, Format::BFloat16, "300x512 bfloat16");
  whole_table(300, 512, Format::Float16, "300x512 float16");
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(checked, 5000 * 512);
}

TEST(ExactMpfr, SampledEntries) {
  const int64_t pairs = testing::samples(65000);
  std::mt19937_64 random(testing::seed(1));
  checked = wrong = ziv_fallback = 0;
  const double bases[] = {10000, 500000, 20, 100};
  const int64_t dims[] = {7, 18, 20, 33, 34, 38, 70, 512, 1024};
  for (const double base : bases) {
    for (const int64_t dim : dims) {
      for (int shift = 0; shift < 2; ++shift) {
        FrequencySpec spec;
        spec.base = base;
        spec.count = shift == 0 ? (dim + 1) / 2 : dim / 2;
        spec.step = shift == 0 ? 2 : 1;
        spec.denominator = shift == 0 ? dim : dim / 2 - 1;
        char what[96];
        std::snprintf(what, sizeof what, "base %g D %" PRId64 " shift %d", base, dim, shift);
        sampled(what, spec, Format::Float32, pairs, random, false, 1e300);
        const Format others[] = {Format::Float64, Format::BFloat16, Format::Float16};
        for (const Format format : others)
          sampled(format == Format::Float64    ? "  float64"
                  : format == Format::BFloat16 ? "  bfloat16"
                                               : "  float16",
                  spec, format, pairs / 10, random, false, 1e300);
      }
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(ziv_fallback, 0);
  EXPECT_GE(checked, testing::samples(10000000));
}

TEST(ExactMpfr, RealPositionsAndOtherFrequencies) {
  const int64_t pairs = testing::samples(40000);
  std::mt19937_64 random(testing::seed(2));
  checked = wrong = ziv_fallback = 0;
  // Real positions, explicit frequencies, powers of two times pi (NeRF), other exponents.
  FrequencySpec spec;
  const Format all[] = {Format::Float32, Format::Float64, Format::BFloat16, Format::Float16};
  for (const Format format : all) {
    sampled("real positions", spec, format, pairs / 4, random, true, 1e300);
    sampled("real positions in [-1,1]", spec, format, pairs / 4, random, true, 1.0);
    FrequencySpec nerf;
    nerf.base = 2, nerf.times_pi = true, nerf.step = -1, nerf.denominator = 1, nerf.count = 10;
    sampled("2^k pi, real", nerf, format, pairs / 16, random, true, 2.0);
    sampled("2^k pi, whole", nerf, format, pairs / 16, random, false, 1e300);
    nerf.scale = 0x1p-20;
    sampled("2^(k-20) pi, whole", nerf, format, pairs / 16, random, false, 1e300);
    nerf.scale = 1, nerf.base = 10000, nerf.step = 2, nerf.denominator = 128, nerf.count = 64;
    sampled("pi 10000^(-2k/128), real", nerf, format, pairs / 16, random, true, 1.0);
    nerf.times_pi = false, nerf.scale = 1e-9;
    sampled("scale 1e-9", nerf, format, pairs / 16, random, false, 1e300);
    nerf.scale = 1e7;
    sampled("scale 1e7, real", nerf, format, pairs / 16, random, true, 1.0);
    std::vector<double> high(40), low(40);
    for (size_t k = 0; k < 40; ++k)
      high[k] = std::ldexp(1.0 + 0.37 * static_cast<double>(k), -static_cast<int>(k)),
      low[k] = high[k] * 0x1.23p-56;
    FrequencySpec given;
    given.values_high = high.data(), given.values_low = low.data(), given.count = 40;
    sampled("given pairs", given, format, pairs / 16, random, false, 1e300);
    sampled("given pairs, real", given, format, pairs / 16, random, true, 1e300);
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace posenc::exact
