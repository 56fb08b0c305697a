#include "posenc/transformer/attention/key_value_cache.h"

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>

#include "support/compare.h"

namespace posenc {
namespace {

using functional::Heads;
using testing::bit_equal;

Heads some(int64_t tokens) {
  return {torch::randn({3, 2, tokens, 4}), torch::randn({3, 2, tokens, 4}),
          torch::randn({3, 2, tokens, 5})};
}

TEST(KeyValueCache, AppendsInPlace) {
  const auto first = some(2), second = some(1);
  KeyValueCache cache(first, 5);
  EXPECT_EQ(cache.length(), 0);
  EXPECT_EQ(cache.capacity(), 5);
  const auto before = cache.append(first);
  const auto after = cache.append(second);
  EXPECT_EQ(cache.length(), 3);
  EXPECT_TRUE(after.query.is_same(second.query));
  EXPECT_TRUE(bit_equal(after.key, torch::cat({first.key, second.key}, 2)));
  EXPECT_TRUE(bit_equal(after.value, torch::cat({first.value, second.value}, 2)));
  EXPECT_EQ(after.key.data_ptr(), before.key.data_ptr()) << "no token is copied twice";
}

// A capacity that no memory could hold costs nothing before there are tokens.
TEST(KeyValueCache, GrowsWithItsTokens) {
  const auto parts = std::vector<Heads>{some(2), some(13), some(1), some(1), some(40), some(1)};
  KeyValueCache cache(parts[0], int64_t{1} << 50);
  EXPECT_EQ(cache.capacity(), int64_t{1} << 50);
  std::vector<torch::Tensor> keys, values;
  for (const auto& part : parts) {
    keys.push_back(part.key);
    values.push_back(part.value);
    const auto all = cache.append(part);
    EXPECT_TRUE(bit_equal(all.key, torch::cat(keys, 2)));
    EXPECT_TRUE(bit_equal(all.value, torch::cat(values, 2)));
    EXPECT_LE(all.key.storage().nbytes(), 2 * 3 * 2 * 4 * sizeof(float) * 58);
  }
  KeyValueCache exact(parts[0], 20);
  exact.append(some(16));
  EXPECT_EQ(exact.append(some(4)).key.storage().nbytes(), 20 * 3 * 2 * 4 * sizeof(float));
  EXPECT_ERROR(exact.append(some(1)), c10::ValueError, "the capacity is 20 tokens. Got token 21");
}

Heads rows_of(const Heads& all, int64_t begin, int64_t count) {
  const auto of = [&](const torch::Tensor& x) { return x.narrow(2, begin, count); };
  return {of(all.query), of(all.key), of(all.value)};
}

// Of a prompt, and of tokens after it, what the next ones see and less than a block of 512 more.
TEST(KeyValueCache, KeepsWhatAWindowLeaves) {
  const int64_t window = 100, prompt = 1300, all = 3000;
  const Heads heads = some(all);
  KeyValueCache cache(heads, all, window);
  EXPECT_EQ(cache.window(), window);
  const auto of_prompt = cache.append(rows_of(heads, 0, prompt));
  EXPECT_TRUE(bit_equal(of_prompt.key, heads.key.narrow(2, 0, prompt)))
      << "a prompt sees all of it";
  EXPECT_EQ(cache.room_for(1).key.size(2), prompt - 1024);
  for (int64_t before = prompt, count = 1; before + count <= all; count = before % 7 + 1) {
    const auto found = cache.append(rows_of(heads, before, count));
    const int64_t seen = found.key.size(2), first = before + count - seen;
    ASSERT_EQ(cache.length(), before + count);
    ASSERT_TRUE(first % 512 == 0 && first <= before - window);
    ASSERT_LT(seen, window + 512 + count);
    ASSERT_TRUE(bit_equal(found.key, heads.key.narrow(2, first, seen)));
    ASSERT_TRUE(bit_equal(found.value, heads.value.narrow(2, first, seen)));
    ASSERT_LE(found.key.storage().nbytes(), (window + 512 + 7) * 3 * 2 * 4 * sizeof(float));
    before += count;
  }
}

TEST(KeyValueCache, GoesBackAsFarAsAWindowLetsIt) {
  const int64_t window = 4;
  const Heads heads = some(1200);
  KeyValueCache cache(heads, 1200, window);
  cache.append(rows_of(heads, 0, 600));
  cache.append(rows_of(heads, 600, 500));
  cache.truncate(600);  // that before the call
  EXPECT_TRUE(bit_equal(cache.append(rows_of(heads, 600, 1)).key, heads.key.narrow(2, 512, 89)));
  EXPECT_ERROR(cache.truncate(515), c10::ValueError,
               "[KeyValueCache] with a window the length must be 0 or that of a call");
  EXPECT_EQ(cache.length(), 601);
  const auto rows = torch::tensor({2, 0, 0});
  KeyValueCache copy = cache, repeated = cache.repeated(rows);
  cache.select(rows);
  for (KeyValueCache* one : {&cache, &repeated}) {
    EXPECT_EQ(one->length(), 601);
    EXPECT_TRUE(bit_equal(one->append(rows_of(heads, 601, 1)).key.narrow(2, 0, 89),
                          heads.key.narrow(2, 512, 89).index_select(0, rows)));
  }
  EXPECT_TRUE(bit_equal(copy.append(rows_of(heads, 601, 1)).value, heads.value.narrow(2, 512, 90)));
  copy.truncate(0);
  EXPECT_TRUE(bit_equal(copy.append(rows_of(heads, 0, 3)).key, heads.key.narrow(2, 0, 3)));
  EXPECT_ERROR(KeyValueCache(heads, 5, -1), c10::ValueError, "window must not be negative. Got -1");
}

// Whichever mode it grows in, it can be used where it was made.
TEST(KeyValueCache, GrowsInInferenceModeAsItWas) {
  const auto heads = some(30), next = some(1);
  KeyValueCache cache(heads, 50);
  {
    const c10::InferenceMode inference;
    cache.append(heads);
  }
  EXPECT_TRUE(bit_equal(cache.append(next).key, torch::cat({heads.key, next.key}, 2)));
}

TEST(KeyValueCache, SelectsRowsOfTheBatch) {
  for (const auto& rows : {torch::tensor({2, 0, 0}), torch::tensor({2, 1})}) {
    const auto heads = some(2);
    KeyValueCache cache(heads, 5);
    cache.append(heads);
    cache.select(rows);
    auto next = some(1);
    next.key = next.key.narrow(0, 0, rows.size(0));
    next.value = next.value.narrow(0, 0, rows.size(0));
    const auto all = cache.append(next);
    EXPECT_TRUE(bit_equal(all.key, torch::cat({heads.key.index_select(0, rows), next.key}, 2)));
    EXPECT_TRUE(
        bit_equal(all.value, torch::cat({heads.value.index_select(0, rows), next.value}, 2)));
  }
}

// Two continuations of one prefix.
TEST(KeyValueCache, ACopyGoesOnApart) {
  const auto first = some(2), left = some(1), right = some(1);
  KeyValueCache cache(first, 5);
  cache.append(first);
  KeyValueCache copy = cache, empty;
  const auto of_cache = cache.append(left);
  const auto of_copy = copy.append(right);
  EXPECT_TRUE(bit_equal(of_cache.key, torch::cat({first.key, left.key}, 2)));
  EXPECT_TRUE(bit_equal(of_copy.value, torch::cat({first.value, right.value}, 2)));
  EXPECT_EQ(copy.capacity(), 5);
  copy = empty;
  EXPECT_EQ(copy.capacity(), 0);
}

TEST(KeyValueCache, TruncatesToALength) {
  const auto first = some(3), second = some(1);
  KeyValueCache cache(first, 5);
  cache.append(first);
  cache.truncate(2);
  EXPECT_EQ(cache.length(), 2);
  const auto all = cache.append(second);
  EXPECT_TRUE(bit_equal(all.key, torch::cat({first.key.narrow(2, 0, 2), second.key}, 2)));
  EXPECT_ERROR(cache.truncate(4), c10::ValueError, "the length must lie in [0, 3]. Got 4");
  EXPECT_ERROR(cache.truncate(-1), c10::ValueError, "Got -1");
}

TEST(KeyValueCacheErrors, RejectsATokenPastTheCapacity) {
  KeyValueCache cache(some(1), 2);
  cache.append(some(2));
  EXPECT_ERROR(cache.append(some(1)), c10::ValueError, "the capacity is 2 tokens. Got token 3");
  EXPECT_EQ(cache.length(), 2);
  EXPECT_ERROR(KeyValueCache(some(1), 0), c10::ValueError, "capacity must be positive");
}

// copy_() would broadcast one row to all of them.
TEST(KeyValueCacheErrors, RejectsHeadsOfOtherSizes) {
  KeyValueCache cache(some(1), 4);
  const auto refuse = [&](int64_t axis, int64_t size, const char* text) {
    auto keys = some(1), values = some(1);
    keys.key = keys.key.narrow(axis, 0, size);
    values.value = values.value.narrow(axis, 0, size);
    EXPECT_ERROR(cache.append(keys), c10::ValueError, text);
    EXPECT_ERROR(cache.append(values), c10::ValueError, text);
  };
  refuse(0, 1, "(B, H, t, Dh) as in the cache, [3, 2, 4, ");
  refuse(1, 1, "(B, H, t, Dh) as in the cache");
  refuse(3, 1, "(B, H, t, Dh) as in the cache");
  refuse(2, 0, "one length");
  EXPECT_ERROR(KeyValueCache().append(some(1)), c10::ValueError, "no room yet");
  EXPECT_EQ(cache.length(), 0);
}

TEST(KeyValueCacheErrors, RejectsRowsThatItDoesNotHave) {
  KeyValueCache cache(some(1), 4), none;
  cache.append(some(2));
  EXPECT_ERROR(cache.select(torch::tensor({0, 1, 2, 0})), c10::ValueError,
               "rows must be at most 3, those of the cache. Got 4");
  EXPECT_ERROR(cache.select(torch::tensor({{0, 1}})), c10::ValueError, "rows must be (B)");
  EXPECT_ERROR(none.select(torch::tensor({0})), c10::ValueError, "a cache with room");
  EXPECT_ERROR(none.room_for(1), c10::ValueError, "a cache with room");
  EXPECT_EQ(cache.length(), 2);
}

// One that was made before the module was converted.
TEST(KeyValueCacheErrors, RejectsHeadsOfAnotherDtype) {
  KeyValueCache cache(some(1), 4);
  auto heads = some(1);
  heads.value = heads.value.to(torch::kBFloat16);
  EXPECT_ERROR(cache.append(heads), c10::TypeError,
               "values must be Float as in the cache, which is made after the module was "
               "converted. Got BFloat16");
  EXPECT_EQ(cache.length(), 0);
}

// Which does not let an inference tensor be written outside it.
TEST(KeyValueCacheErrors, NamesACacheThatWasMadeInInferenceMode) {
  const auto heads = some(2), next = some(1);
  KeyValueCache cache;
  {
    const c10::InferenceMode inference;
    cache = KeyValueCache(heads, 5);
    cache.append(heads);
  }
  const char* message =
      "[KeyValueCache] a cache that was made in InferenceMode must be used in it. Got a call "
      "outside";
  EXPECT_ERROR(cache.append(next), c10::ValueError, message);
  EXPECT_ERROR(cache.select(torch::tensor({1, 0, 2})), c10::ValueError, message);
  EXPECT_EQ(cache.length(), 2);
  KeyValueCache copy = cache;  // is made here
  EXPECT_TRUE(bit_equal(copy.append(next).key, torch::cat({heads.key, next.key}, 2)));
  const c10::InferenceMode inference;
  EXPECT_TRUE(bit_equal(cache.append(next).key, torch::cat({heads.key, next.key}, 2)));
}

TEST(KeyValueCache, GoesOnOutsideInferenceMode) {
  const auto heads = some(2), next = some(1);
  const auto rows = torch::tensor({1, 0, 2});
  KeyValueCache cache(heads, 5);
  {
    const c10::InferenceMode inference;
    cache.append(heads);
    cache.select(rows);
  }
  const auto all = cache.append(next);
  EXPECT_TRUE(bit_equal(all.key, torch::cat({heads.key.index_select(0, rows), next.key}, 2)));
  cache.select(rows);
}

TEST(KeyValueCache, HasNoRoomAfterAMove) {
  KeyValueCache cache(some(1), 4), other;
  cache.append(some(2));
  other = std::move(cache);
  const KeyValueCache third = std::move(other);
  EXPECT_EQ(third.length(), 2);
  for (const KeyValueCache* moved : {&cache, &other}) {
    EXPECT_EQ(moved->length(), 0);
    EXPECT_EQ(moved->capacity(), 0);
  }
}

TEST(KeyValueCache, RecordsNoGradients) {
  auto heads = some(2);
  heads.key.requires_grad_();
  heads.value.requires_grad_();
  KeyValueCache cache(heads, 5);
  const auto all = cache.append(heads);
  EXPECT_FALSE(all.key.requires_grad());
  EXPECT_FALSE(all.value.requires_grad());
  cache.select(torch::tensor({1, 0, 2}));
  EXPECT_FALSE(cache.append(some(1)).key.requires_grad());
}

}  // namespace
}  // namespace posenc
