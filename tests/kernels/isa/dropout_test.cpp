// The dropout kernel, compared element by element, with each instruction set.
#include <gtest/gtest.h>

#include "kernels/isa/scalar.h"
#include "support/seed.h"

namespace posenc::kernels::embed {
namespace {

using namespace scalar;

TEST(EmbedDropout, MultipliesOrZeroes) {
  on_each_set([](const Kernels& use) {
    std::mt19937 random(testing::seed(7));
    for (const Type type : {Type::Float32, Type::Float64, Type::BFloat16, Type::Float16}) {
      for (const int64_t n : {1, 3, 15, 16, 17, 31, 32, 33, 64, 100, 1000}) {
        const Bytes x = random_values(type, n, random, /*extremes=*/true);
        const auto mask = random_mask(n, random);
        const double factor = rounded(type, 1.0 / 0.7);
        Bytes out(static_cast<size_t>(n * element_size(type)) + 8, 0xab);
        const auto drop = use.dropout.drop[static_cast<int>(type)];
        const int64_t first = n / 128 * 64;  // in two calls
        const DropoutRequest request{x.data(), {mask.data(), factor}, out.data()};
        drop(request, 0, first);
        drop(request, first, n);
        for (int64_t i = 0; i < n; ++i) {
          const double by = kept(mask.data(), i) ? factor : 0.0;
          const double expected = rounded(type, product(type, get(x, type, i), by));
          const double found = get(out, type, i);
          const bool same = std::isnan(expected) ? std::isnan(found)
                                                 : found == expected && std::signbit(found) ==
                                                                            std::signbit(expected);
          EXPECT_TRUE(same) << "type " << static_cast<int>(type) << ", element " << i << " of "
                            << n;
        }
        for (size_t i = out.size() - 8; i < out.size(); ++i) EXPECT_EQ(out[i], 0xab);
      }
    }
  });
}

}  // namespace
}  // namespace posenc::kernels::embed
