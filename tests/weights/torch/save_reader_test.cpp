#include <gtest/gtest.h>

#include <string>

#include "weights/files.h"
#include "weights/torch/make_zip.h"
#include "weights/torch/readers.h"

namespace posenc::testing {
namespace {

using namespace std::string_literals;

// {"w": four float32 in storage "0"}
const std::string kPickle =
    "\x80\2}U\1wctorch._utils\n_rebuild_tensor_v2\n("
    "(U\7storagectorch\nFloatStorage\nU\1"
    "0U\3cpuK\4tQ"
    "K\0K\4\x85K\1\x85\x89NtRs."s;

ZipParts archive(const std::string& data) {
  return zip_parts({{"r/data.pkl", kPickle}, {"r/data/0", data}});
}

Manifest read(const std::string& bytes) {
  const auto file = io::InputFile::of_bytes(bytes);
  return io::read_archive(file);
}

TEST(TorchSave, FindsItsStoragesInRecords) {
  const std::string bytes = archive(std::string(20, 'x')).join();  // larger than necessary
  const Manifest manifest = read(bytes);
  ASSERT_EQ(manifest.tensors.size(), 1u);
  EXPECT_EQ(manifest.tensors[0].name, "w");
  EXPECT_EQ(manifest.storages[0].bytes, 16u);
  EXPECT_EQ(bytes.substr(manifest.storages[0].offset, 16), std::string(16, 'x'));
}

TEST(TorchSave, RefusesRecordsThatCannotBeThem) {
  EXPECT_CONTAINS(
      refusal([] { read(archive(std::string(15, 'x')).join()); }),
      "OutOfBounds: tensor 'w' has a storage of 16 bytes, but record 'data/0' has only 15");
  EXPECT_CONTAINS(refusal([] { read(make_zip({{"r/data.pkl", kPickle}})); }),
                  "Corrupt: tensor 'w' has its data in record 'data/0', which is missing");
  ZipParts parts = archive(std::string(20, 'x'));
  parts.locals[1][8] = parts.entries[1][10] = '\x8';  // deflated
  const Manifest compressed = read(parts.join());
  EXPECT_TRUE(compressed.tensors.empty());
  ASSERT_EQ(compressed.opaque.size(), 1u);
  EXPECT_CONTAINS(compressed.opaque[0].text,
                  "a tensor that has its data in the compressed record 'data/0'");
}

TEST(ExportedProgram, NamesTheByteWhereItsListOfWeightsIsNotJson) {
  const auto read_config = [](const std::string& config) {
    read(make_zip({{"r/archive_format", "pt2"},
                   {"r/archive_version", "0"},
                   {"r/data/weights/model_weights_config.json", config}}));
  };
  EXPECT_CONTAINS(
      refusal([&] { read_config(R"({"config":{},})"); }),
      "Corrupt: must have JSON in UTF-8 as its list of weights. Got an error at byte 14");
  EXPECT_CONTAINS(refusal([&] { read_config(R"({"config":{"a":{"x":1,"x":2}}})"); }),
                  "Corrupt: has a damaged list of weights: key 'x' occurs twice");
}

// The fields of a weight, but not inside a weight.
TEST(ExportedProgram, RefusesAListInPlaceOfItsWeights) {
  for (const std::string field :
       {R"({"path_name":"x"})", R"({"is_param":true})", R"({"tensor_meta":{"dtype":3}})",
        R"({"tensor_meta":{"storage_offset":{"as_int":0}}})"}) {
    for (const std::string& config : {"[" + field + "]", R"({"w":[)" + field + "]}"}) {
      const std::string bytes =
          make_zip({{"r/archive_format", "pt2"},
                    {"r/archive_version", "0"},
                    {"r/data/weights/model_weights_config.json", R"({"config":)" + config + "}"}});
      EXPECT_CONTAINS(refusal([&] { read(bytes); }), "Corrupt: has a damaged list of weights");
    }
  }
}

}  // namespace
}  // namespace posenc::testing
