// The forward kernel against the composition, computed one element at a time: all types,
// instruction sets and widths, all kinds of positions, masks at any bit, any split.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/isa/scalar.h"
#include "support/seed.h"

namespace posenc::kernels::embed {
namespace {

using namespace scalar;

// The memory that a request points to.
struct Case {
  Type type;
  int64_t tokens, dim, rows, positions;
  bool wide;
  std::vector<int64_t> ids, position_ids;
  std::vector<int32_t> narrow_ids, narrow_position_ids;
  Bytes weight, table;
  std::vector<uint8_t> mask;
  EmbedRequest g;
};

template <typename From>
Integers integers(bool wide, const std::vector<From>& long_ids, std::vector<int32_t>& short_ids) {
  short_ids.assign(long_ids.begin(), long_ids.end());
  return wide ? Integers{long_ids.data(), true} : Integers{short_ids.data(), false};
}

// kind: 0 no positions, 1 consecutive, 2 by ids, 3 sequence first
void fill(Case& c, int kind, bool dropout, std::mt19937& random) {
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  c.rows = 1 + below(40);
  c.g.weight_stride = c.dim + below(3);
  c.weight = random_values(plain(c.type), c.rows * c.g.weight_stride, random, true);
  c.ids.resize(static_cast<size_t>(c.tokens));
  for (int64_t& id : c.ids) id = below(c.rows);
  c.g.ids = integers(c.wide, c.ids, c.narrow_ids);
  c.g.tokens = c.tokens;
  c.g.weight = c.weight.data();
  c.g.dim = c.dim;
  c.g.scale = below(4) == 0 ? 1.0 : std::pow(static_cast<double>(c.dim) + 0.3, 0.5);
  AddedRows& p = c.g.added[0];
  p.count = std::max<int64_t>(1, kind == 3 ? (c.tokens + 2) / 3 : 1 + below(c.tokens + 1));
  p.divide = kind == 3 ? 3 : 1;
  c.positions = p.count + 5;
  p.stride = c.dim + below(2);
  c.table = random_values(table_type(c.type), c.positions * p.stride, random, true);
  p.table = c.table.data();
  c.g.tables = kind != 0 ? 1 : 0;
  if (kind == 2) {
    c.position_ids.resize(static_cast<size_t>(p.count));
    for (int64_t& id : c.position_ids) id = below(c.positions);
    p.ids = integers(!c.wide, c.position_ids, c.narrow_position_ids);
  } else {
    p.ids = {nullptr, false};
    p.offset = below(5);
  }
  if (dropout) {
    c.mask = random_mask(c.tokens * c.dim, random);
    c.g.kept.bits = c.mask.data();
    c.g.kept.factor = rounded(c.type == plain(c.type) ? c.type : Type::Float32, 1.0 / 0.7);
  }
}

Bytes expected(const Case& c) {
  const bool exact = is_exact(c.type);
  const Type type = plain(c.type), between = exact ? Type::Float32 : type;
  const AddedRows& p = c.g.added[0];
  Bytes out(static_cast<size_t>(c.tokens * c.dim * element_size(type)));
  for (int64_t t = 0; t < c.tokens; ++t) {
    const int64_t slot = t / p.divide % p.count;
    const int64_t position = p.ids.data != nullptr ? p.ids[slot] : p.offset + slot;
    for (int64_t j = 0; j < c.dim; ++j) {
      double x = get(c.weight, type, c.ids[static_cast<size_t>(t)] * c.g.weight_stride + j);
      x = rounded(between, product(type, x, c.g.scale));
      if (c.g.tables != 0)
        x = rounded(between,
                    sum(type, x, get(c.table, table_type(c.type), position * p.stride + j)));
      if (!c.mask.empty())
        x = rounded(between,
                    product(type, x, kept(c.mask.data(), t * c.dim + j) ? c.g.kept.factor : 0.0));
      put(out, type, t * c.dim + j, x);
    }
  }
  return out;
}

// NaNs compare equal, because their payload is not specified.
int64_t first_difference(const Bytes& a, const Bytes& b, Type type, int64_t n) {
  const int64_t size = element_size(type);
  for (int64_t i = 0; i < n; ++i) {
    if (std::memcmp(a.data() + i * size, b.data() + i * size, static_cast<size_t>(size)) != 0 &&
        !(std::isnan(get(a, plain(type), i)) && std::isnan(get(b, plain(type), i))))
      return i;
  }
  return -1;
}

struct Aligned {
  explicit Aligned(size_t bytes)
      : memory(static_cast<uint8_t*>(std::aligned_alloc(64, (bytes + 64) / 64 * 64 + 64))) {}
  ~Aligned() { std::free(memory); }
  uint8_t* memory;
};

void run(const Case& c, const Kernels& use, const Bytes& want, int64_t split, bool stream,
         size_t misalign) {
  Aligned out(want.size() + misalign);
  std::memset(out.memory, 0xab, want.size() + misalign);
  EmbedRequest g = c.g;
  g.out = out.memory + misalign;
  g.stream = stream;
  for (int64_t begin = 0; begin < c.tokens; begin += split)
    use.gather.gather[static_cast<int>(c.type)](g, begin, std::min(c.tokens, begin + split));
  const Bytes got(out.memory + misalign, out.memory + misalign + want.size());
  EXPECT_EQ(first_difference(got, want, c.type, c.tokens * c.dim), -1)
      << "type " << static_cast<int>(c.type) << " dim " << c.dim << " tokens " << c.tokens
      << " split " << split << " stream " << stream;
}

TEST(EmbedGather, EqualsTheCompositionOnEachInstructionSet) {
  on_each_set([](const Kernels& use) {
    std::mt19937 random(testing::seed(7));
    for (const Type type : kAllTypes) {
      for (const int64_t dim : {1, 3, 8, 15, 16, 31, 32, 33, 64, 96, 100, 200, 512}) {
        for (int kind = 0; kind < 4; ++kind) {
          for (const bool dropout : {false, true}) {
            Case c;
            c.type = type;
            c.dim = dim;
            c.tokens = kind == 0 && dim == 8 ? 0 : 1 + static_cast<int64_t>(random() % 20);
            c.wide = random() % 2 == 0;
            fill(c, kind, dropout, random);
            const Bytes want = expected(c);
            run(c, use, want, c.tokens + 1, false, 0);
            run(c, use, want, c.tokens + 1, true, 0);
            run(c, use, want, 3, dropout, static_cast<size_t>(element_size(type)));
          }
        }
      }
    }
  });
}

TEST(EmbedGather, FindsTheFirstIdOutside) {
  on_each_set([](const Kernels& use) {
    for (const int64_t n : {0, 1, 2, 255, 256, 257, 1000}) {
      std::vector<int64_t> ids(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i) ids[static_cast<size_t>(i)] = i % 50;
      std::vector<int32_t> narrow;
      for (const bool wide : {true, false}) {
        const auto first = [&] {
          return use.gather.find_out_of_range(integers(wide, ids, narrow), n, 50);
        };
        EXPECT_EQ(first(), -1);
        for (const int64_t at : {n - 1, n / 2}) {
          for (const int64_t bad :
               {int64_t{-1}, int64_t{50}, int64_t{INT32_MIN}, int64_t{INT32_MAX}}) {
            if (n == 0) continue;
            const int64_t good = ids[static_cast<size_t>(at)];
            ids[static_cast<size_t>(at)] = bad;
            EXPECT_EQ(first(), at) << bad;
            ids[static_cast<size_t>(at)] = good;
          }
        }
      }
      if (n == 0) continue;
      for (const int64_t bad : {INT64_MIN, INT64_MAX, int64_t{1} << 32}) {
        ids[0] = bad;
        EXPECT_EQ(use.gather.find_out_of_range({ids.data(), true}, n, 50), 0);
      }
    }
  });
}

}  // namespace
}  // namespace posenc::kernels::embed
