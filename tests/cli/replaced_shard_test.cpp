// A shard is replaced, by renaming another file over it, while its index is converted or hashed.
#include <filesystem>
#include <functional>

#include "cli/digests.h"
#include "cli/program.h"
#include "cli/sha256.h"
#include "weights/convert.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

constexpr std::size_t kShard = 200'000;  // in bytes: more than is read when a file is opened

class ReplacedShard : public InFolder {
 protected:
  void SetUp() override {
    write_bytes(file("a"), shard("a", '0'));
    write_bytes(file("b"), shard("b", '1'));
    write_bytes(file("other"), shard("b", '2'));
    write_bytes(index(), R"({"weight_map": {"a": "a", "b": "b"}})");
  }
  static std::string shard(const std::string& name, char fill) {
    const auto size = std::to_string(kShard);
    return crafted("{\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[" + size +
                       "],\"data_offsets\":[0," + size + "]}}",
                   std::string(kShard, fill));
  }
  std::string index() const { return file("m.index.json"); }

  // Returns a progress callback that replaces the second shard as soon as bytes of the first one
  // are read or written.
  std::function<void(uint64_t, uint64_t)> replace_second() {
    return [this](uint64_t bytes, uint64_t of) {
      EXPECT_EQ(of, 2 * kShard);
      if (is_replaced_ || bytes == 0) return;
      EXPECT_LE(bytes, kShard) << "the second shard has been read already";
      std::filesystem::rename(file("other"), file("b"));
      is_replaced_ = true;
    };
  }

  bool is_replaced_ = false;
};

TEST_F(ReplacedShard, ConvertWritesTheOneThatItPlannedWith) {
  const io::OpenWeights weights(index());
  io::write_as_safetensors(weights, file("converted"), replace_second());
  EXPECT_TRUE(is_replaced_);
  const auto bytes = read_bytes(file("converted"));
  EXPECT_EQ(bytes.substr(bytes.size() - 2 * kShard),
            std::string(kShard, '0') + std::string(kShard, '1'));
}

TEST_F(ReplacedShard, InspectHashesTheOneThatItPlannedWith) {
  const io::OpenWeights weights(index());
  const auto found = cli::digests(weights, replace_second());
  EXPECT_TRUE(is_replaced_);
  std::vector<std::string> expected;
  for (const char fill : {'0', '1'}) {
    const std::string bytes(kShard, fill);
    cli::Sha256 hash;
    hash.update(bytes.data(), bytes.size());
    expected.push_back(hash.hex());
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace posenc::testing
