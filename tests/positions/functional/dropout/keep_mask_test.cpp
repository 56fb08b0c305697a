// Dropout's random bits against the generators' recurrences, one number at a time.
// tests/positions/functional/dropout_test.cpp checks that they are ATen's.
#include <gtest/gtest.h>

#include "kernels/isa/scalar.h"
#include "positions/functional/dropout/keep_mask.h"

namespace posenc::functional {
namespace {

using kernels::Kernels;
using kernels::embed::scalar::kept;
using kernels::embed::scalar::on_each_set;

// State words of the generator std::mt19937, with ATen's counters.
using Words = std::vector<uint32_t>;
Mt19937 seeded(uint32_t seed, Words& words) {
  words.resize(kStateWords);
  Mt19937 state;
  state.words = words.data();
  state.words[0] = seed;
  for (uint32_t j = 1; j < kStateWords; ++j)
    state.words[j] = 1812433253 * (state.words[j - 1] ^ state.words[j - 1] >> 30) + j;
  EXPECT_TRUE(state.set_counts(1, 0));
  return state;
}

TEST(KeepMask, Mt19937IsATensBernoulli) {
  on_each_set([](const Kernels& use) {
    for (const uint32_t seed : {0u, 5489u, 4000000000u}) {
      for (const double keep : {0.9, 0.5, 1.0, 0x1p-53, 1e-300, 0.3}) {
        std::mt19937 oracle(seed);
        Words words;
        Mt19937 state = seeded(seed, words);
        oracle.discard(seed % 2);  // start at an odd word, so that pairs straddle blocks
        if (seed % 2 == 1) {
          use.random.twist(state.words);
          EXPECT_TRUE(state.set_counts(624, 1));
        }
        Mt19937Mask mask(&state, keep, use.random);
        for (const int64_t n : {1, 63, 64, 65, 311, 312, 313, 5000, 7}) {
          std::vector<uint8_t> bits(static_cast<size_t>(mask_bytes(n)));
          BitWriter to{bits.data()};
          mask.write(n / 2, to);  // in two calls, like rows
          mask.write(n - n / 2, to);
          to.finish();
          int64_t wrong = 0;
          for (int64_t i = 0; i < n; ++i) {
            const uint64_t high = oracle(), low = oracle();
            const double u =
                static_cast<double>((high << 32 | low) & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
            wrong += kept(bits.data(), i) != (u < keep);
          }
          EXPECT_EQ(wrong, 0) << "seed " << seed << " keep " << keep << " n " << n;
        }
        // The states must match as well: the next words are the same.
        for (int i = 0; i < 700; ++i) {
          if (state.next == kStateWords) {
            use.random.twist(state.words);
            state.next = 0;
          }
          uint32_t y = state.words[state.next++];
          y ^= y >> 11;
          y ^= y << 7 & 0x9d2c5680;
          y ^= y << 15 & 0xefc60000;
          y ^= y >> 18;
          ASSERT_EQ(y, oracle()) << i;
        }
      }
    }
  });
}

TEST(KeepMask, Mcg31IsTheRecurrence) {
  on_each_set([](const Kernels& use) {
    for (const uint32_t seed : {0u, 1u, 77u, 0x7fffffffu, 0xffffffffu}) {
      for (const double keep : {0.9, 0.5, 1e-12, 1.0}) {
        Mcg31Mask mask(seed, keep, use.random);
        const int64_t n = 1000;
        std::vector<uint8_t> bits(static_cast<size_t>(mask_bytes(n)));
        BitWriter to{bits.data()};
        for (const int64_t part : {1, 99, 28, 64, 808}) mask.write(part, to);
        to.finish();
        uint64_t x = seed % 0x7fffffff;
        if (x == 0) x = 1;
        int64_t wrong = 0;
        for (int64_t i = 0; i < n; ++i) {
          wrong += kept(bits.data(), i) != (static_cast<double>(x) / 2147483647.0 < keep);
          x = x * 1132489760 % 0x7fffffff;
        }
        EXPECT_EQ(wrong, 0) << "seed " << seed << " keep " << keep;
      }
    }
  });
}

TEST(KeepMask, ContradictoryCountersAreRefused) {
  Words words;
  Mt19937 state = seeded(1, words);
  EXPECT_TRUE(state.set_counts(1, 624));
  EXPECT_EQ(state.next, 624);
  EXPECT_TRUE(state.set_counts(624, 1));
  EXPECT_EQ(state.left(), 624);
  EXPECT_FALSE(state.set_counts(600, 1));
  EXPECT_FALSE(state.set_counts(0, 625));
  EXPECT_FALSE(state.set_counts(700, 3));
}

}  // namespace
}  // namespace posenc::functional
