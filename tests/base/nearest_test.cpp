#include "base/nearest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace posenc {
namespace {

using Names = std::vector<std::string>;

TEST(Nearest, OrdersByEditDistance) {
  const Names names = {"fairseq", "whisper", "whisker", "bert"};
  EXPECT_EQ(detail::nearest("whisper", names), (Names{"whisper", "whisker", "fairseq"}));
  EXPECT_EQ(detail::nearest("berd", names, 1), Names{"bert"});
}

TEST(Nearest, CountsInsertionsDeletionsAndReplacements) {
  EXPECT_EQ(detail::nearest("abc", {"abXYc", "aXc", "ab", "xyz"}, 4),
            (Names{"aXc", "ab", "abXYc", "xyz"}));
}

TEST(Nearest, EqualDistancesKeepTheirOrder) {
  EXPECT_EQ(detail::nearest("a", {"c", "b", "d"}, 2), (Names{"c", "b"}));
}

TEST(Nearest, LeavesOutNamesThatAreFarther) {
  EXPECT_EQ(detail::nearest("abc", {"abXYc", "aXc", "xyz"}, 4, 2), (Names{"aXc", "abXYc"}));
}

TEST(Nearest, HandlesEmptyInput) {
  EXPECT_EQ(detail::nearest("a", {}), Names{});
  EXPECT_EQ(detail::nearest("", {"abc", "a", ""}, 2), (Names{"", "a"}));
  EXPECT_EQ(detail::nearest("a", {"b"}, 0), Names{});
}

}  // namespace
}  // namespace posenc
