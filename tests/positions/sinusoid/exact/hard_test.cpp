// The entries of large tables that are nearest to a tie between two float32 values, against MPFR.
#include <gtest/gtest.h>
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "positions/sinusoid/exact/mpfr_reference.h"
#include "positions/sinusoid/exact/table_writer.h"

namespace posenc::exact {
namespace {

namespace reference = posenc::testing::reference;

struct Hard {
  double distance;  // from the tie, relative to the value
  int64_t k;
  bool cosine;
  double position;
};

}  // namespace

TEST(ExactHard, NearestToATieAreRoundedRight) {
  const int64_t positions = 20000;
  FrequencySpec spec;
  spec.denominator = 1024, spec.count = 512;
  const Frequencies f(spec);
  const int64_t n = f.view().padded;
  std::vector<double> row(static_cast<size_t>(2 * n));
  std::vector<Hard> hard;
  for (int64_t i = 0; i < positions; ++i) {
    const double p = static_cast<double>(i % 2 == 0 ? i / 2 + 1 : INT64_C(2147483647) - i / 2);
    kernels::chosen().sincos.row(f.view(), p, 0.0, row.data());
    for (int64_t j = 0; j < 2 * n; ++j) {
      const double x = row[static_cast<size_t>(j)];
      int e = 0;
      const double m = std::ldexp(std::frexp(std::fabs(x), &e), 24);  // float32's ulp is 1
      const double distance = std::fabs(m - std::floor(m) - 0.5) / m;
      if (distance < 0x1p-46) hard.push_back({distance, j % n, j < n, p});
    }
  }
  std::sort(hard.begin(), hard.end(),
            [](const Hard& a, const Hard& b) { return a.distance < b.distance; });
  reference::Sinusoid oracle(spec);
  int wrong = 0;
  for (const Hard& h : hard) {
    double s, c;
    oracle.at(h.k, h.position, Format::Float32, &s, &c);
    const double want = h.cosine ? c : s;
    std::vector<float> out(1024);
    const int64_t id = static_cast<int64_t>(h.position);
    RowLayout l;
    l.sin_count = l.cos_count = 512, l.row_stride = 1024;
    TableWriter(f, Positions{0, 1, &id, nullptr}, 1, Format::Float32)
        .write(0, 1, Destination{out.data(), l, false});
    const double got = static_cast<double>(out[static_cast<size_t>(2 * h.k + (h.cosine ? 1 : 0))]);
    if (got != want || f.entry(h.k, h.cosine, h.position, Format::Float32) != want) ++wrong;
  }
  EXPECT_GT(hard.size(), 0u);
  EXPECT_EQ(wrong, 0);
}

}  // namespace posenc::exact
