#include "cli/sha256.h"
#include "support/python.h"
#include "weights/files.h"

#include <gtest/gtest.h>

#include <sstream>

namespace posenc::testing {
namespace {

// Hashes `text` in pieces of `piece` bytes.
std::string digest(const std::string& text, std::size_t piece) {
  cli::Sha256 hash;
  for (std::size_t begin = 0; begin < text.size(); begin += piece) {
    hash.update(text.data() + begin, std::min(piece, text.size() - begin));
  }
  return hash.hex();
}

// Examples that NIST publishes with FIPS 180-4.
TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(digest("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1'000'000, 'a'), 4096),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Texts that end anywhere in a block, split into pieces of several sizes.
TEST(Sha256, GivesPythonsDigestsOfEveryLength) {
  const TempDir folder;
  ASSERT_TRUE(run_python(folder, R"(
import hashlib
data = bytes(i * 7 % 256 for i in range(200))
print("\n".join(hashlib.sha256(data[:n]).hexdigest() for n in range(201)), file=open("digests", "w"))
)"));
  std::istringstream expected(read_bytes(folder / "digests"));
  std::string data, line;
  for (std::size_t length = 0; length <= 200; ++length) {
    ASSERT_TRUE(std::getline(expected, line));
    for (const std::size_t piece : {1, 55, 63, 64, 65, 200}) {
      EXPECT_EQ(digest(data, piece), line) << length << " bytes by " << piece;
    }
    data += static_cast<char>(length * 7 % 256);
  }
}

}  // namespace
}  // namespace posenc::testing
