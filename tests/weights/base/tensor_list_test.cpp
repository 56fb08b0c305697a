#include "weights/common/tensor_list.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "base/text.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
using Sizes = std::vector<int64_t>;

// Adds one float32 tensor in a storage of 64 bytes.
void add(const Sizes& sizes, const Sizes& strides, int64_t offset = 0, const char* name = "w",
         uint64_t bytes = 64) {
  Manifest manifest;
  io::Budget budget(64);
  io::TensorList list(manifest, budget, 64);
  ManifestTensor tensor;
  tensor.storage = list.add_storage({0, 0, bytes});
  tensor.name = name;
  tensor.sizes = sizes;
  tensor.strides = strides;
  tensor.offset = offset;
  EXPECT_TRUE(list.add(tensor));
}

std::string refused(const Sizes& sizes, const Sizes& strides, int64_t offset = 0) {
  return refusal([&] { add(sizes, strides, offset); });
}

TEST(TensorList, TakesWhatLiesInside) {
  add({16}, {1});
  add({}, {}, 15);
  add({4, 4}, {1, 4});
  add({2, 2}, {12, 3});
  add({1000, 16}, {0, 1});
  add({0}, {1}, 16);
  add({3, 0, 5}, {1000, 1000, 1000});
  add({1}, {kLargest}, 15);
}

TEST(TensorList, RefusesWhatDoesNot) {
  const char* outside =
      "OutOfBounds: tensor 'w' reaches outside its storage of 64 bytes. Got offset";
  EXPECT_CONTAINS(refused({17}, {1}), outside);
  EXPECT_CONTAINS(refused({}, {}, 16), outside);
  EXPECT_CONTAINS(refusal([] { add({16}, {1}, 0, "w", 63); }), "outside its storage of 63 bytes");
  EXPECT_CONTAINS(refused({2}, {16}), outside);
  EXPECT_CONTAINS(refused({2}, {16}), "offset 0, sizes [2], strides [16]");
  EXPECT_CONTAINS(refused({16}, {1}, 1), outside);
  const char* beyond = "OutOfBounds: tensor 'w' has an offset or a shape beyond any storage";
  EXPECT_CONTAINS(refused({1}, {1}, -1), beyond);
  EXPECT_CONTAINS(refused({int64_t{1} << 32, int64_t{1} << 32}, {0, 0}), beyond);
  EXPECT_CONTAINS(refused({int64_t{1} << 32, int64_t{1} << 32, 0}, {0, 0, 0}), beyond);
  EXPECT_CONTAINS(refused({0, int64_t{1} << 32, int64_t{1} << 32}, {0, 0, 0}), beyond);
  EXPECT_CONTAINS(refused({int64_t{1} << 62}, {0}), beyond);
  EXPECT_CONTAINS(refused({3}, {kLargest}), beyond);
  EXPECT_CONTAINS(refused({2, 2}, {kLargest, kLargest}), beyond);
  EXPECT_CONTAINS(refused({1}, {1}, kLargest), outside);
  EXPECT_CONTAINS(refused({-1}, {1}),
                  "Corrupt: tensor 'w' must not have negative sizes or strides");
  EXPECT_CONTAINS(refused({2}, {-1}, 5), "Corrupt: tensor 'w' must not have negative sizes");
  EXPECT_CONTAINS(refused({2, 2}, {1}), "Corrupt: tensor 'w' must have at most 64 dimensions");
  EXPECT_CONTAINS(refused(Sizes(65, 1), Sizes(65, 1)), "Got sizes 65, strides 65");
  EXPECT_CONTAINS(refused({int64_t{1} << 40}, {0}), "LimitExceeded: tensor 'w' is expanded");

  Manifest manifest;
  io::Budget budget(64);
  io::TensorList list(manifest, budget, 64);
  ManifestTensor tensor;
  tensor.storage = list.add_storage({0, 0, 64});
  tensor.sizes = {int64_t{1} << 25};  // half of the total limit
  tensor.strides = {0};
  for (const char* name : {"a", "b"}) {
    tensor.name = name;
    EXPECT_TRUE(list.add(tensor));
  }
  tensor.name = "c";
  EXPECT_CONTAINS(refusal([&] { static_cast<void>(list.add(tensor)); }),
                  "LimitExceeded: tensor 'c' is expanded, or");
}

TEST(TensorList, HasEachNameOnce) {
  Manifest manifest;
  io::Budget budget(64);
  io::TensorList list(manifest, budget, 64);
  ManifestTensor tensor;
  tensor.storage = list.add_storage({0, 0, 64});
  tensor.name = "a";
  EXPECT_TRUE(list.add(tensor));
  EXPECT_FALSE(list.add(tensor));
  EXPECT_EQ(manifest.tensors.size(), 1u);
  EXPECT_CONTAINS(refusal([] { add({}, {}, 0, "\xff"); }),
                  "Corrupt: tensor '?' must have a name in UTF-8");
}

TEST(Utf8, IsChecked) {
  for (const char* good : {"", "abc", "\u00e9", "\u20ac", "\U0001f600", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(io::is_utf8(good)) << good;
  }
  for (const char* bad :
       {"\xff", "\x80", "\xc3", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80",
        "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xe2\x82x"}) {
    EXPECT_FALSE(io::is_utf8(bad)) << bad;
  }
}

}  // namespace
}  // namespace posenc::testing
