// The backward kernel and the grouping of tokens, against ATen's loop over the tokens.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/group_by_id.h"
#include "kernels/isa/scalar.h"
#include "support/seed.h"

namespace posenc::kernels::embed::sum_rows_test {
namespace {

using namespace scalar;

constexpr uint8_t kAnything = 0xA5;  // initial value of output bytes, which must be overwritten

struct Case {
  Type type;
  int64_t tokens, dim, rows, padding;
  double scale;
  std::vector<int64_t> ids;
  Bytes grad;
  std::vector<uint8_t> mask;
  DropoutMask kept;
};

Case random_case(Type type, int64_t tokens, int64_t dim, bool dropout, std::mt19937& random) {
  Case c{type, tokens, dim, 1 + static_cast<int64_t>(random() % 50), -1, 1.0, {}, {}, {}, {}};
  c.scale = random() % 3 == 0 ? 1.0 : std::sqrt(static_cast<double>(dim) + 0.7);
  if (random() % 2 == 0) c.padding = static_cast<int64_t>(random() % static_cast<uint64_t>(c.rows));
  for (int64_t t = 0; t < tokens; ++t)
    c.ids.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(c.rows)));
  c.grad = random_values(plain(type), tokens * dim, random);
  if (dropout) {
    c.mask = random_mask(tokens * dim, random);
    c.kept = {c.mask.data(), rounded(is_exact(type) ? Type::Float32 : type, 1 / 0.9)};
  }
  return c;
}

// Adds one token after another to rows of zeros.
Bytes expected(const Case& c) {
  const Type type = plain(c.type), between = is_exact(c.type) ? Type::Float32 : type;
  Bytes out(static_cast<size_t>(c.rows * c.dim * element_size(type)));
  for (int64_t t = 0; t < c.tokens; ++t) {
    const int64_t id = c.ids[static_cast<size_t>(t)];
    for (int64_t j = 0; j < c.dim && id != c.padding; ++j) {
      double x = get(c.grad, type, t * c.dim + j);
      if (c.kept.bits != nullptr)
        x = rounded(between,
                    product(type, x, kept(c.kept.bits, t * c.dim + j) ? c.kept.factor : 0));
      x = rounded(type, product(type, x, c.scale));
      put(out, type, id * c.dim + j, sum(type, get(out, type, id * c.dim + j), x));
    }
  }
  return out;
}

TEST(EmbedSumRows, EqualsTheWalkOverTheTokens) {
  scalar::on_each_set([](const Kernels& use) {
    std::mt19937 random(testing::seed(3));
    for (const Type type : kAllTypes) {
      for (const int64_t dim : {1, 7, 16, 33, 96, 200}) {
        for (const int64_t tokens : {0, 1, 40, 700}) {
          const Case c = random_case(type, tokens, dim, (dim + tokens) % 3 != 0, random);
          const Bytes want = expected(c);
          const TokenGroups groups = group_by_id({c.ids.data(), true}, tokens, c.rows, c.padding);
          const auto count = static_cast<int64_t>(groups.ids.size());
          SumRowsRequest s;
          s.grad = c.grad.data();
          s.dim = dim;
          s.scale = c.scale;
          s.kept = c.kept;
          s.token = groups.tokens.data();
          s.first = groups.first.data();
          s.row = groups.ids.data();
          s.out_stride = dim;
          const auto sum_rows = use.sum_rows.sum_rows[static_cast<int>(type)];
          Bytes fresh(want.size());
          s.out = fresh.data();
          for (int64_t part = 0; part < 3; ++part)  // like three threads
            sum_rows(s, first_group(groups, part, 3), first_group(groups, part + 1, 3));
          EXPECT_EQ(fresh, want) << "dim " << dim << " tokens " << tokens;

          Bytes existing = random_values(plain(type), c.rows * dim, random);
          existing.resize(want.size());
          Bytes total = existing;  // summed first, then added, as in autograd
          for (const int64_t id : groups.ids) {
            for (int64_t i = id * dim; i < (id + 1) * dim; ++i)
              put(total, plain(type), i,
                  sum(type, get(existing, plain(type), i), get(want, plain(type), i)));
          }
          Bytes scratch(static_cast<size_t>(dim * element_size(type)), kAnything);
          s.out = existing.data();
          s.scratch = scratch.data();
          sum_rows(s, 0, count);
          EXPECT_EQ(existing, total) << "dim " << dim << " tokens " << tokens;

          Bytes rows(static_cast<size_t>(count * dim * element_size(type)), kAnything);
          s.out = rows.data();
          s.scratch = nullptr;
          s.row = nullptr;  // consecutive rows: a sparse gradient's values
          sum_rows(s, 0, count);
          for (int64_t g = 0; g < count; ++g) {
            const int64_t bytes = dim * element_size(type);
            EXPECT_TRUE(std::equal(rows.begin() + g * bytes, rows.begin() + (g + 1) * bytes,
                                   want.begin() + groups.ids[static_cast<size_t>(g)] * bytes));
          }
        }
      }
    }
  });
}

// Ids that were in range when checked, but not when read again.
TEST(GroupById, SkipsIdsOutOfRange) {
  for (const size_t n : {size_t{40}, size_t{3000}}) {
    std::vector<int64_t> ids(n, 4);
    ids[1] = -1;
    ids[2] = 7;
    ids[3] = INT64_MAX;
    ids[4] = INT64_MIN;
    ids[5] = 6;
    ids[6] = 0;
    const TokenGroups groups = group_by_id({ids.data(), true}, static_cast<int64_t>(n), 7, -1);
    EXPECT_EQ(groups.ids, (std::vector<int64_t>{0, 4, 6}));
    EXPECT_EQ(groups.tokens.size(), n - 4);
    EXPECT_EQ(groups.tokens.front(), 6);
    EXPECT_EQ(groups.tokens.back(), 5);
  }
}

TEST(GroupById, IsStableAndSkipsPadding) {
  std::mt19937 random(testing::seed(5));
  for (const int64_t n : {0, 1, 2, 255, 256, 3000}) {
    for (const int64_t bound :
         {int64_t{1}, int64_t{2}, int64_t{2048}, int64_t{2049}, int64_t{1} << 40}) {
      std::vector<int64_t> ids;
      for (int64_t i = 0; i < n; ++i)
        ids.push_back(static_cast<int64_t>((uint64_t{random()} << 20 ^ random() % 7) %
                                           static_cast<uint64_t>(bound)));
      const int64_t skip = ids.empty() ? -1 : ids[0];
      const TokenGroups groups = group_by_id({ids.data(), true}, n, bound, skip);
      std::vector<int32_t> want;
      for (int64_t i = 0; i < n; ++i)
        if (ids[static_cast<size_t>(i)] != skip) want.push_back(static_cast<int32_t>(i));
      std::stable_sort(want.begin(), want.end(), [&](int32_t a, int32_t b) {
        return ids[static_cast<size_t>(a)] < ids[static_cast<size_t>(b)];
      });
      EXPECT_EQ(groups.tokens, want);
      ASSERT_EQ(groups.first.size(), groups.ids.size() + 1);
      EXPECT_EQ(groups.first.back(), static_cast<int32_t>(want.size()));
      for (size_t g = 0; g < groups.ids.size(); ++g) {
        EXPECT_LT(groups.first[g], groups.first[g + 1]);
        EXPECT_TRUE(g == 0 || groups.ids[g - 1] < groups.ids[g]);
        for (int32_t i = groups.first[g]; i < groups.first[g + 1]; ++i)
          EXPECT_EQ(ids[static_cast<size_t>(groups.tokens[static_cast<size_t>(i)])], groups.ids[g]);
      }
      EXPECT_EQ(first_group(groups, 0, 4), 0);
      EXPECT_EQ(first_group(groups, 4, 4), static_cast<int64_t>(groups.ids.size()));
    }
  }
}

}  // namespace
}  // namespace posenc::kernels::embed::sum_rows_test
