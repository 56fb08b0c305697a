#include "weights/common/keyed_hash.h"

#include <gtest/gtest.h>

namespace posenc::testing {
namespace {

// The SipHash-2-4 test vector in appendix A of the paper.
TEST(KeyedHash, IsSipHash) {
  const io::HashKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::string text;
  for (char c = 0; c < 15; ++c) text += c;
  EXPECT_EQ(io::sip_hash(text, key, 2, 4), 0xa129ca6149be45e5u);
  EXPECT_NE(io::sip_hash(text, key), io::sip_hash(text, {0, 1}));
  EXPECT_NE(io::sip_hash("", key), io::sip_hash(std::string(1, '\0'), key));
}

TEST(KeyedHash, FindsAStringByAView) {
  io::NameSet names{"a", "b"};
  EXPECT_TRUE(names.contains(std::string_view("a")));
  EXPECT_FALSE(names.contains(std::string_view("c")));
}

}  // namespace
}  // namespace posenc::testing
