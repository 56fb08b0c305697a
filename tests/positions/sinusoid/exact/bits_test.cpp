// The same bits with every instruction set, row split, thread split, layout, factoring and error
// bound.
#include <gtest/gtest.h>
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "kernels/isa.h"
#include "positions/sinusoid/exact/table_writer.h"

namespace posenc::exact::bits_test {
namespace {

size_t size_of(Format f) { return f == Format::Float64 ? 8 : f == Format::Float32 ? 4 : 2; }

void expect(bool ok, const char* what) { EXPECT_TRUE(ok) << what; }

RowLayout interleaved(int64_t dim) {
  RowLayout l;
  l.sin_count = (dim + 1) / 2, l.cos_count = dim / 2, l.row_stride = dim;
  return l;
}

using Bytes = std::vector<unsigned char>;

Bytes table(const Frequencies& f, const Positions& p, int64_t rows, Format format,
            const SincosKernels& use, const RowLayout& layout, int64_t split, double widen = 1,
            bool stream = false, bool threads = false) {
  Bytes out(static_cast<size_t>(rows * layout.row_stride) * size_of(format), 0xAB);
  TableWriter writer(f, p, rows, format, use);
  writer.rows().set_widening(widen);
  const Destination to{out.data(), layout, stream};
  std::vector<std::thread> running;
  for (int64_t begin = 0; begin < rows; begin += split) {
    const int64_t end = std::min(rows, begin + split);
    if (threads)
      running.emplace_back([&, begin, end] { writer.write(begin, end, to); });
    else
      writer.write(begin, end, to);
  }
  for (auto& t : running) t.join();
  return out;
}

void same_everywhere(const char* what, const FrequencySpec& spec, const Positions& p, int64_t rows,
                     Format format, int64_t dim) {
  const Frequencies f(spec);
  const RowLayout layout = interleaved(dim);
  const Bytes want = table(f, p, rows, format, kernels::chosen().sincos, layout, rows);
  for (const std::string& set : kernels::set_names()) {
    SCOPED_TRACE(set);
    const SincosKernels& use = kernels::find(set)->sincos;
    for (int64_t split : {rows, int64_t{1}, int64_t{37}, int64_t{64}})
      expect(table(f, p, rows, format, use, layout, split) == want, what);
    expect(table(f, p, rows, format, use, layout, rows, 1, true) == want, what);
    expect(table(f, p, rows, format, use, layout, (rows + 4) / 5, 1, false, true) == want, what);
    // With bounds 2^12 and 2^20 times wider, the Ziv fallback computes many entries, and must agree
    // with the kernels on all of them.
    for (double widen : {0x1p12, 0x1p20}) {
      const int64_t before = f.decided();
      expect(table(f, p, std::min<int64_t>(rows, 40), format, use, layout, rows, widen) ==
                 Bytes(want.begin(), want.begin() + std::min<int64_t>(rows, 40) * dim *
                                                        static_cast<int64_t>(size_of(format))),
             what);
      if (format != Format::Float64 && widen > 0x1p15 && dim > 7)
        expect(f.decided() > before, "the Ziv fallback was called");
    }
    if (p.reals == nullptr) {
      for (int bits : {0, 3, 7}) {
        Bytes out(want.size(), 0xAB);
        const FactoredRows factored(f, 3000, format, bits, use);
        factored.write(p, 0, rows, Destination{out.data(), layout, false});
        expect(out == want, what);
      }
    }
  }
}

// Every layout contains the entries of the planes (columns of sines and of cosines).
void layouts(Format format, const SincosKernels& use) {
  for (int64_t dim : {1, 2, 7, 33, 127, 128, 129, 130, 300}) {
    FrequencySpec spec;
    spec.denominator = dim, spec.count = (dim + 1) / 2;
    const Frequencies f(spec);
    const int64_t n = (dim + 1) / 2, rows = 70, size = static_cast<int64_t>(size_of(format));
    RowLayout planes;
    planes.sin_stride = planes.cos_stride = 1, planes.sin_count = planes.cos_count = n,
    planes.row_stride = n, planes.cos_offset = rows * n;
    Bytes plain(static_cast<size_t>(2 * rows * n * size));
    TableWriter writer(f, Positions{-20, 1, nullptr, nullptr}, rows, format, use);
    writer.write(0, rows, Destination{plain.data(), planes, false});
    const auto check = [&](RowLayout l, const char* what) {
      for (bool stream : {false, true}) {
        Bytes out(static_cast<size_t>(rows * l.row_stride * size), 0xAB);
        writer.write(0, rows, Destination{out.data(), l, stream});
        Bytes want(out.size(), 0xAB);
        for (int64_t r = 0; r < rows; ++r) {
          const auto put = [&](int64_t column, const unsigned char* from) {
            if (from == nullptr)
              std::memset(&want[static_cast<size_t>((r * l.row_stride + column) * size)], 0,
                          static_cast<size_t>(size));
            else
              std::memcpy(&want[static_cast<size_t>((r * l.row_stride + column) * size)], from,
                          static_cast<size_t>(size));
          };
          for (int64_t k = 0; k < l.sin_count; ++k)
            put(l.sin_offset + k * l.sin_stride, &plain[static_cast<size_t>((r * n + k) * size)]);
          for (int64_t k = 0; k < l.cos_count; ++k)
            put(l.cos_offset + k * l.cos_stride,
                &plain[static_cast<size_t>((rows * n + r * n + k) * size)]);
          if (l.zero_column >= 0) put(l.zero_column, nullptr);
        }
        expect(out == want, what);
      }
    };
    const int64_t h = dim / 2, o = dim - h;
    RowLayout l = interleaved(dim);
    check(l, "interleaved, extra sine");
    l.row_stride = dim + 5;
    check(l, "interleaved, wide rows");
    l = RowLayout{1, 2, h, 0, 2, h, dim % 2 == 1 ? dim - 1 : -1, dim};
    check(l, "interleaved, cosine first, zero column");
    l = RowLayout{0, 1, h, h, 1, h, dim % 2 == 1 ? dim - 1 : -1, dim};
    check(l, "halves, zero column");
    l = RowLayout{0, 1, o, o, 1, h, -1, dim};
    check(l, "halves, extra sine");
    l = RowLayout{h, 1, h, 0, 1, h, -1, dim};
    check(l, "halves, cosine first");
    l = RowLayout{0, 3, h, 1, 3, h, 2, 3 * h + 3};
    check(l, "strides of 3");
  }
}

}  // namespace

TEST(ExactBits, AreTheSameEverywhere) {
  std::vector<int64_t> ids;
  std::vector<double> reals;
  for (int64_t i = 0; i < 150; ++i) {
    ids.push_back(i % 3 == 0 ? 2147483647 - i * i : i % 3 == 1 ? -i * 99991 : i * 17);
    reals.push_back(static_cast<double>(i) * 0.731 - 20.0 + (i % 5 == 0 ? 1e6 : 0.0));
  }
  const Format formats[] = {Format::Float32, Format::Float64, Format::BFloat16, Format::Float16};
  const char* names[] = {"float32", "float64", "bfloat16", "float16"};
  for (int i = 0; i < 4; ++i) {
    for (int64_t dim : {7, 38, 512}) {
      FrequencySpec spec;
      spec.denominator = dim, spec.count = (dim + 1) / 2;
      char what[80];
      const auto run = [&](const char* kind, const Positions& p) {
        std::snprintf(what, sizeof what, "%s D %d %s", names[i], static_cast<int>(dim), kind);
        same_everywhere(what, spec, p, 150, formats[i], dim);
      };
      run("0..149", Positions{});
      run("-77, step 3", Positions{-77, 3, nullptr, nullptr});
      run("from 2^31-1, step -14000000", Positions{2147483647, -14000000, nullptr, nullptr});
      run("ids", Positions{0, 1, ids.data(), nullptr});
      run("reals", Positions{0, 1, nullptr, reals.data()});
    }
    for (const std::string& set : kernels::set_names()) {
      SCOPED_TRACE(set);
      layouts(formats[i], kernels::find(set)->sincos);
    }
  }
}

// FNV-1a of whole tables: constants, with which every CPU is compared.
TEST(ExactBits, HaveTheSameHashOnEveryCpu) {
  const uint64_t expected[4] = {0xc03c3d9a2673647e, 0x84b8ab06920f671d, 0x5b69f7ad754f6abd,
                                0x21b5290b9c581507};
  const std::vector<int64_t> ids = {0, 1, -77, 123456789, 2147483646, -2147483647, 99991};
  const std::vector<double> reals = {0.0, -0.5, 1e-3, 3.14159, 1234567.8, -1e6, 99.5};
  const Format formats[] = {Format::Float32, Format::Float64, Format::BFloat16, Format::Float16};
  for (const std::string& set : kernels::set_names()) {
    SCOPED_TRACE(set);
    for (int i = 0; i < 4; ++i) {
      uint64_t hash = 0xcbf29ce484222325;
      for (int64_t dim : {38, 512}) {
        FrequencySpec spec;
        spec.denominator = dim, spec.count = dim / 2;
        const Frequencies f(spec);
        const auto add = [&](const Positions& p, int64_t rows) {
          const Bytes out =
              table(f, p, rows, formats[i], kernels::find(set)->sincos, interleaved(dim), rows);
          for (unsigned char byte : out) hash = (hash ^ byte) * 0x100000001b3;
        };
        add(Positions{}, 150);
        add(Positions{0, 1, ids.data(), nullptr}, 7);
        add(Positions{0, 1, nullptr, reals.data()}, 7);
      }
      EXPECT_EQ(hash, expected[i]) << "format " << i << ": 0x" << std::hex << hash;
    }
  }
}

TEST(ExactZivFallback, GoesOnUntilItIsDecided) {
  // Starting the Ziv fallback with a higher precision changes nothing. It continues by itself if
  // 256 bits are not enough (a tiny position: the sine is below 2^-190).
  FrequencySpec spec;
  Frequencies f(spec);
  const double low = f.entry(3, false, 12345, Format::Float64);
  for (int limbs : {8, 16, 32, 64}) {
    f.first_limbs = limbs;
    expect(f.entry(3, false, 12345, Format::Float64) == low, "precision of the Ziv fallback");
  }
  f.first_limbs = 4;
  const double value =
      1.0;  // w_0 = 1: sin(x) is just below x, a float32 tie that only the cubic term breaks
  const int64_t before = f.decided_beyond_stored();
  const double x = (1.0 + 0x1p-24) * 0x1p-110;  // x^3/6 is 2^-223 relative: beyond 190 bits
  expect(f.entry(0, false, x * value, Format::Float32) == 0x1p-110,
         "a tie that 256 bits leave open goes down");
  expect(f.decided_beyond_stored() > before, "more than 256 bits were used");
  for (double bad : {0.0, -1.0, HUGE_VAL}) {
    bool thrown = false;
    spec.base = bad;
    try {
      Frequencies g(spec);
    } catch (const std::invalid_argument&) {
      thrown = true;
    }
    expect(thrown, "a bad base is refused");
  }
}

}  // namespace posenc::exact::bits_test
