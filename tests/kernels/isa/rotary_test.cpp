// The rotation against its definition, one element at a time: every type and type of table, every
// instruction set, both pairings and the ways between them, any width, strides, both directions, in
// place, any split.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/platform/memory.h"
#include "kernels/isa/scalar.h"
#include "kernels/rotary.h"
#include "support/seed.h"

namespace posenc::kernels::rotary {
namespace {

using namespace embed::scalar;

// All that a request points to.
struct Case {
  Type type;
  int64_t batch;
  bool heads_first;  // (B, H, L, D); else (B, L, H, D)
  Bytes cos, sin, x[2];
  Rotation r;
};

int64_t elements(const Case& c, int i) { return c.batch * c.r.heads[i].x_batch; }
Type type_of_table(const Case& c) { return c.r.angles.is_float ? Type::Float32 : plain(c.type); }

Heads heads_of(const Case& c, int64_t count, int64_t gap) {
  const int64_t width = c.r.width + gap, length = c.r.length;
  Heads h{};
  h.count = count;
  h.x_batch = h.out_batch = count * length * width;
  h.x_head = h.out_head = c.heads_first ? length * width : width;
  h.x_row = h.out_row = c.heads_first ? width : count * width;
  return h;
}

Case random_case(Type type, int64_t pairs, std::mt19937& random) {
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  Case c;
  c.type = type;
  c.batch = 1 + below(3);
  c.heads_first = below(2) == 0;
  Rotation& r = c.r;
  r = {};
  r.length = 1 + below(40);
  r.pairs = pairs;
  r.first = below(3) == 0 ? below(40) : 0;
  r.width = r.first + 2 * pairs + (below(3) == 0 ? below(20) : 0);
  r.read_adjacent = below(2) == 0;
  r.write_adjacent = below(2) == 0;
  r.negative = below(2) == 0;
  r.transposed = below(2) == 0;
  r.zeros = static_cast<int>(below(4));
  Angles& a = r.angles;
  const int layout = static_cast<int>(below(3));  // halves, pairs, n wide
  a.step = layout == 1 ? 2 : 1;
  a.second = layout == 0 ? pairs : layout == 1 ? 1 : 0;
  a.is_float = type == Type::Float32 || below(2) == 0;
  a.round = a.is_float && !is_exact(type) && below(2) == 0;
  a.row_stride = (layout == 2 ? pairs : 2 * pairs) + below(3);
  a.batch_stride = below(2) == 0 ? 0 : r.length * a.row_stride;
  const int64_t entries = c.batch * r.length * a.row_stride;
  c.cos = random_values(type_of_table(c), entries, random);
  c.sin = random_values(type_of_table(c), entries, random);
  r.count = 1 + static_cast<int>(below(2));
  const bool extremes = below(2) == 0;
  for (int i = 0; i < r.count; ++i) {
    r.heads[i] = heads_of(c, 1 + below(5), below(3) == 0 ? below(5) : 0);
    c.x[i] = random_values(plain(type), elements(c, i), random, extremes);
  }
  return c;
}

double angle(const Case& c, const Bytes& table, int64_t batch, int64_t row, int64_t i,
             bool second) {
  const Angles& a = c.r.angles;
  const double x =
      get(table, type_of_table(c),
          batch * a.batch_stride + row * a.row_stride + i * a.step + (second ? a.second : 0));
  return a.round ? rounded(plain(c.type), x) : x;
}

// Rotates one head, of x at `x_at` to `out` at `out_at`.
void rotate_head(const Case& c, const Bytes& x, int64_t x_at, Bytes& out, int64_t out_at,
                 int64_t batch, int64_t row) {
  const Rotation& r = c.r;
  const Type type = plain(c.type), between = is_exact(c.type) ? Type::Float32 : type;
  const int64_t n = r.pairs;
  const double to_pairs = r.zeros & kToPairs ? 0.0 : -0.0,
               to_heads = r.zeros & kToHeads ? 0.0 : -0.0;
  for (int64_t j = 0; j < r.width; ++j)
    put(out, type, out_at + j, get(x, type, x_at + j) + to_heads);
  const auto combined = [&](double a, double cosine, double b, double sine) {
    const double p = rounded(between, product(type, a, cosine));
    const double q = rounded(between, product(type, b, sine));
    return rounded(type, rounded(between, sum(type, p, q)) + to_pairs) + to_heads;
  };
  for (int64_t i = 0; i < n; ++i) {
    const int64_t from1 = r.first + (r.read_adjacent ? 2 * i : i);
    const int64_t from2 = r.first + (r.read_adjacent ? 2 * i + 1 : i + n);
    const int64_t to1 = r.first + (r.write_adjacent ? 2 * i : i);
    const int64_t to2 = r.first + (r.write_adjacent ? 2 * i + 1 : i + n);
    const double x1 = get(x, type, x_at + from1), x2 = get(x, type, x_at + from2);
    const double sign = r.negative ? -1 : 1;
    const double s1 = sign * angle(c, c.sin, batch, row, i, false);
    const double s2 = sign * angle(c, c.sin, batch, row, i, true);
    const double c1 = angle(c, c.cos, batch, row, i, false);
    const double c2 = angle(c, c.cos, batch, row, i, true);
    put(out, type, out_at + to1, combined(x1, c1, x2, r.transposed ? s2 : -s1));
    put(out, type, out_at + to2, combined(x2, c2, x1, r.transposed ? -s1 : s2));
  }
}

Bytes expected(const Case& c, int i) {
  const Heads& h = c.r.heads[i];
  Bytes out = c.x[i];
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t head = 0; head < h.count; ++head)
      for (int64_t row = 0; row < c.r.length; ++row) {
        const int64_t at = b * h.x_batch + head * h.x_head + row * h.x_row;
        rotate_head(c, c.x[i], at, out, at, b, row);
      }
  return out;
}

struct Aligned {
  explicit Aligned(const Bytes& bytes)
      : memory(static_cast<uint8_t*>(std::aligned_alloc(64, (bytes.size() + 63) / 64 * 64))) {
    std::memcpy(memory, bytes.data(), bytes.size());
  }
  ~Aligned() { std::free(memory); }
  Aligned(const Aligned&) = delete;
  uint8_t* memory;
};

// All NaNs are considered equal. Nothing is written between the heads.
int64_t first_difference(const uint8_t* got, const Bytes& want, Type type, int64_t n) {
  const int64_t size = embed::element_size(type);
  const Bytes own(got, got + n * size);
  for (int64_t i = 0; i < n; ++i) {
    if (std::memcmp(got + i * size, want.data() + i * size, static_cast<size_t>(size)) != 0 &&
        !(std::isnan(get(own, plain(type), i)) && std::isnan(get(want, plain(type), i))))
      return i;
  }
  return -1;
}

// `request` gives the same result as the definition for `c`, a case without ids.
void expect_rotated(const Kernels& use, Case& request, const Case& c, bool in_place, bool stream,
                    int64_t split) {
  request.r.angles.cos = request.cos.data();
  request.r.angles.sin = request.sin.data();
  request.r.stream = stream;
  const Aligned first(c.x[0]), second(c.x[1]);
  uint8_t* const out[2] = {first.memory, second.memory};
  for (int i = 0; i < c.r.count; ++i) {
    request.r.heads[i].x = in_place ? out[i] : request.x[i].data();
    request.r.heads[i].out = out[i];
  }
  const int64_t rows = c.batch * c.r.length;
  float* const scratch = platform::scratch(platform::Scratch::Rotation, scratch_floats(c.r.pairs));
  for (int64_t begin = 0; begin < rows; begin += split)
    use.rotary.rotate[static_cast<int>(c.type)](request.r, begin, std::min(rows, begin + split),
                                                scratch);
  for (int i = 0; i < c.r.count; ++i) {
    EXPECT_EQ(first_difference(out[i], expected(c, i), c.type, elements(c, i)), -1)
        << "type " << static_cast<int>(c.type) << " pairs " << c.r.pairs << " width " << c.r.width
        << " first " << c.r.first << " read " << c.r.read_adjacent << " write "
        << c.r.write_adjacent << " transposed " << c.r.transposed << " in place " << in_place
        << " stream " << stream << " split " << split;
  }
}

TEST(Rotary, EqualsTheDefinitionOnEachInstructionSet) {
  on_each_set([](const Kernels& use) {
    std::mt19937 random(testing::seed(31));
    for (const Type type : embed::scalar::kAllTypes) {
      for (const int64_t pairs : {1, 3, 8, 11, 16, 19, 32, 40, 64, 300}) {
        for (int i = 0; i < 4; ++i) {
          Case c = random_case(type, pairs, random);
          expect_rotated(use, c, c, i % 2 == 1, i == 0, i < 2 ? 1000 : 3);
        }
      }
    }
  });
}

// Every product of two mantissas of bfloat16, ties among them, on both sides of the sizes that the
// quick arithmetic takes: 2^-63 to 2^64 in x, 2^-40 to 2^40 among the factors, and zeros.
TEST(Rotary, RoundsEachProductOfBFloat16) {
  constexpr int64_t kMantissas = 128;
  const auto number = [](int64_t mantissa, int exponent) {
    return std::ldexp(1 + static_cast<double>(mantissa) / kMantissas, exponent);
  };
  Case c;
  c.type = Type::BFloat16;
  c.batch = 1;
  c.heads_first = true;
  c.r = {};
  c.r.length = c.r.pairs = c.r.angles.row_stride = kMantissas;
  c.r.width = 2 * kMantissas;
  c.r.angles.step = 1;
  c.r.count = 1;
  c.r.heads[0] = heads_of(c, 5, 0);
  c.cos = c.sin = Bytes(2 * kMantissas * kMantissas);
  c.x[0] = Bytes(static_cast<size_t>(2 * elements(c, 0)));
  for (int64_t row = 0; row < kMantissas; ++row) {
    const int size = row < 100 ? 0 : row < 107 ? 40 : row < 114 ? -40 : row < 121 ? -41 : -64;
    for (int64_t i = 0; i < kMantissas; ++i) {
      const int64_t at = row * kMantissas + i;
      put(c.cos, c.type, at, row % 50 == 49 ? 0.0 : number(row, size));
      put(c.sin, c.type, at, row % 25 == 24 ? -0.0 : -number((row + i) % kMantissas, -size / 2));
    }
  }
  const int sizes[5] = {0, -63, 63, -64, 64};
  for (int64_t i = 0; i < elements(c, 0); ++i) {
    const int64_t channel = i % c.r.width, head = i / c.r.heads[0].x_head;
    const double sign = i % 3 == 0 ? -1 : 1;
    put(c.x[0], c.type, i,
        sign * (head == 3 && channel % 64 == 5 ? 0.0 : number(channel % kMantissas, sizes[head])));
  }
  on_each_set([&](const Kernels& use) {
    for (const bool adjacent : {false, true}) {
      c.r.read_adjacent = c.r.write_adjacent = adjacent;
      expect_rotated(use, c, c, adjacent, false, 1000);
    }
  });
}

// Rows of a table of all positions, which the tokens' ids name.
TEST(Rotary, LooksRowsUp) {
  on_each_set([](const Kernels& use) {
    std::mt19937 random(testing::seed(33));
    for (const Type type : embed::scalar::kAllTypes) {
      for (const bool wide : {false, true}) {
        Case c = random_case(type, 19, random);
        const int64_t rows = c.batch * c.r.length, stride = c.r.angles.row_stride;
        const int64_t size = embed::element_size(type_of_table(c));
        c.r.angles.batch_stride = c.r.length * stride;
        Case cached = c;
        cached.cos = random_values(type_of_table(c), 50 * stride, random);
        cached.sin = random_values(type_of_table(c), 50 * stride, random);
        c.cos.resize(static_cast<size_t>(rows * stride * size));
        c.sin.resize(static_cast<size_t>(rows * stride * size));
        std::vector<int64_t> ids(static_cast<size_t>(rows));
        for (size_t i = 0; i < ids.size(); ++i) {
          ids[i] = static_cast<int64_t>(random() % 50);
          const auto row = static_cast<size_t>(stride * size);
          std::memcpy(c.cos.data() + i * row, cached.cos.data() + static_cast<size_t>(ids[i]) * row,
                      row);
          std::memcpy(c.sin.data() + i * row, cached.sin.data() + static_cast<size_t>(ids[i]) * row,
                      row);
        }
        const std::vector<int32_t> narrow(ids.begin(), ids.end());
        cached.r.angles.ids = {wide ? static_cast<const void*>(ids.data()) : narrow.data(), wide};
        cached.r.angles.ids_batch = c.r.length;
        cached.r.angles.batch_stride = 0;
        expect_rotated(use, cached, c, false, false, 7);
      }
    }
  });
}

// Lines that are streamed: whole heads without gaps.
TEST(Rotary, StreamsTheSameBits) {
  on_each_set([](const Kernels& use) {
    std::mt19937 random(testing::seed(32));
    for (const Type type : embed::scalar::kAllTypes) {
      for (const int64_t pairs : {32, 64, 128}) {
        for (int kind = 0; kind < 4; ++kind) {
          Case c = random_case(type, pairs, random);
          c.r.first = 0;
          c.r.width = 2 * pairs + (kind == 3 ? 64 : 0);
          c.r.read_adjacent = kind == 1 || kind == 2;
          c.r.write_adjacent = kind == 1;
          for (int i = 0; i < c.r.count; ++i) {
            c.r.heads[i] = heads_of(c, 1 + i, 0);
            c.x[i] = random_values(plain(type), elements(c, i), random);
          }
          expect_rotated(use, c, c, false, true, 1000);
        }
      }
    }
  });
}

}  // namespace
}  // namespace posenc::kernels::rotary
