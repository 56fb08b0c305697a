// A manifest whose files may be replaced while they are read.
#include "weights/manifest/open_weights.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "weights/files.h"

namespace posenc::testing {
namespace {

using Code = WeightsErrorCode;
constexpr std::size_t kLarge = 200'000;  // in bytes; more than is read when a file is opened

std::string shard(const std::string& name, char fill, std::size_t size = kLarge) {
  const auto length = std::to_string(size);
  return crafted("{\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[" + length +
                     "],\"data_offsets\":[0," + length + "]}}",
                 std::string(size, fill));
}

std::string shard_name(int number) { return "s" + std::to_string(number); }

// Writes an index and `count` shards with one tensor each, filled with bytes `fill`.
std::string write_shards(const TempDir& dir, int count, char fill) {
  nlohmann::ordered_json map;  // keeps the order
  for (int i = 0; i < count; ++i) {
    map["t" + std::to_string(i)] = shard_name(i);
    write_bytes(dir / shard_name(i), shard("t" + std::to_string(i), fill));
  }
  write_bytes(dir / "index.json", nlohmann::ordered_json({{"weight_map", map}}).dump());
  return dir / "index.json";
}

// Replaces a shard by renaming a new file, as a writer does that never writes in place.
void replace(const TempDir& dir, int number, char fill) {
  write_bytes(dir / "new", shard("t" + std::to_string(number), fill));
  std::filesystem::rename(dir / "new", dir / shard_name(number));
}

std::string bytes_of(const io::OpenWeights& weights, const ManifestTensor& tensor) {
  std::string bytes;
  weights.stream(tensor, [&](const char* data, std::size_t count) { bytes.append(data, count); });
  return bytes;
}

TEST(OpenWeights, AFileThatIsReplacedIsReadAsItWas) {
  const TempDir dir;
  for (const std::size_t size : {kLarge, std::size_t{10}}) {
    write_bytes(dir / "x", shard("t", 'a', size));
    const io::OpenWeights weights(dir / "x");
    write_bytes(dir / "new", shard("t", 'b', size));
    std::filesystem::rename(dir / "new", dir / "x");
    EXPECT_EQ(bytes_of(weights, weights.manifest.tensors.at(0)), std::string(size, 'a'));
  }
}

TEST(OpenWeights, AShardThatIsReplacedIsReadAsItWas) {
  const TempDir dir;
  const io::OpenWeights weights(write_shards(dir, 3, 'a'));
  replace(dir, 1, 'b');
  EXPECT_EQ(weights.total_bytes(), 3 * kLarge);
  for (const auto& tensor : weights.manifest.tensors) {
    EXPECT_EQ(bytes_of(weights, tensor), std::string(kLarge, 'a')) << tensor.name;
  }
}

// That many cannot all be open at once.
TEST(OpenWeights, ManyShardsNeedFewDescriptors) {
  const TempDir dir;
  const auto index = write_shards(dir, 300, 'a');
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{290, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  try {
    const io::OpenWeights weights(index);
    for (const auto& tensor : weights.manifest.tensors) {
      EXPECT_EQ(bytes_of(weights, tensor), std::string(kLarge, 'a')) << tensor.name;
    }
  } catch (const WeightsError& error) {
    ADD_FAILURE() << error.what();
  }
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(OpenWeights, AShardThatIsOpenedAgainHasToBeTheSame) {
  const TempDir dir;
  const io::OpenWeights weights(write_shards(dir, 300, 'a'));
  replace(dir, 0, 'b');  // closed by now
  int refused = 0;
  for (const auto& tensor : weights.manifest.tensors) {
    if (tensor.name != "t0") {
      EXPECT_EQ(bytes_of(weights, tensor), std::string(kLarge, 'a')) << tensor.name;
      continue;
    }
    const auto error = error_of([&] { bytes_of(weights, tensor); });
    EXPECT_EQ(error.code(), Code::Io);
    EXPECT_EQ(error.file(), dir / shard_name(0));
    EXPECT_CONTAINS(error.what(), "has been replaced or written to since");
    ++refused;
  }
  EXPECT_EQ(refused, 1);
}

TEST(OpenWeights, NameTheShardThatIsWrong) {
  const TempDir dir;
  const auto index = write_shards(dir, 3, 'a');
  std::filesystem::resize_file(dir / shard_name(1), 1000);
  const auto error = error_of([&] { io::OpenWeights weights(index); });
  EXPECT_EQ(error.code(), Code::Truncated);
  EXPECT_EQ(error.file(), dir / shard_name(1));
}

}  // namespace
}  // namespace posenc::testing
