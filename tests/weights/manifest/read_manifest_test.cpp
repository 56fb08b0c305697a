// The contents that read_manifest() reports, and its error messages. hostile/ tests which files it
// rejects.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "posenc/weights/manifest.h"
#include "weights/common/file.h"
#include "weights/files.h"
#include "weights/torch/make_zip.h"

namespace posenc::testing {
namespace {

using Sizes = std::vector<int64_t>;

class ReadManifest : public ::testing::Test {
 protected:
  Manifest read(const std::string& bytes) {
    write_bytes(dir_ / "x", bytes);
    return read_manifest(dir_ / "x");
  }
  std::string refused(const std::string& bytes) {
    return refusal([&] { read(bytes); });
  }

  TempDir dir_;
};

TEST_F(ReadManifest, Safetensors) {
  const auto manifest = read(crafted(R"({"b":{"dtype":"F16","shape":[2,3],"data_offsets":[1,13]},)"
                                     R"("__metadata__":{"format":"pt"},)"
                                     R"("a":{"dtype":"BOOL","shape":[],"data_offsets":[0,1]}})",
                                     std::string(13, '\1')));
  EXPECT_EQ(manifest.format, WeightsFormat::Safetensors);
  EXPECT_EQ(manifest.files, std::vector<std::string>{dir_ / "x"});
  EXPECT_EQ(manifest.metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
  ASSERT_EQ(manifest.tensors.size(), 2u);
  const auto& [b, a] = std::pair(manifest.tensors[0], manifest.tensors[1]);
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.dtype, ManifestDtype::Float16);
  EXPECT_EQ(b.sizes, (Sizes{2, 3}));
  EXPECT_EQ(b.strides, (Sizes{3, 1}));
  EXPECT_EQ(a.dtype, ManifestDtype::Bool);
  EXPECT_EQ(a.sizes, Sizes{});
  const auto& storage = manifest.storages.at(b.storage);
  const auto size = std::filesystem::file_size(dir_ / "x");
  EXPECT_EQ(storage.offset, size - 12);
  EXPECT_EQ(storage.bytes, 12u);
  EXPECT_EQ(manifest.storages.at(a.storage).offset, size - 13);
  const auto ones = read(crafted(R"({"a":{"dtype":"U8","shape":[1,2,1,3],"data_offsets":[0,6]}})",
                                 std::string(6, '\1')));
  EXPECT_EQ(ones.tensors.at(0).strides, (Sizes{6, 3, 3, 1}));  // those of a contiguous tensor
}

TEST_F(ReadManifest, Index) {
  const auto one = [](const std::string& name) {
    return crafted(R"({"__metadata__":{"format":"pt"},")" + name +
                       R"(":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
                   name + name);
  };
  std::filesystem::create_directory(dir_ / "blobs");
  write_bytes(dir_ / "blobs/1", one("a"));
  write_bytes(dir_ / "second", one("b"));
  write_bytes(dir_ / "blobs/index", R"({"weight_map":{"a":"first","b":"second"}})");
  // As in Hugging Face's cache: symbolic links to files in another folder.
  std::filesystem::create_symlink("blobs/1", dir_ / "first");
  std::filesystem::create_symlink("blobs/index", dir_ / "index");
  const auto manifest = read_manifest(dir_ / "index");
  EXPECT_EQ(manifest.format, WeightsFormat::SafetensorsIndex);
  EXPECT_EQ(manifest.files, (std::vector<std::string>{dir_ / "first", dir_ / "second"}));
  EXPECT_EQ(manifest.metadata.at("format"), "pt");
  ASSERT_EQ(manifest.tensors.size(), 2u);
  for (const auto& tensor : manifest.tensors) {
    const auto& storage = manifest.storages.at(tensor.storage);
    const io::InputFile file(manifest.files.at(storage.file));
    EXPECT_EQ(file.read(storage.offset, storage.bytes), tensor.name + tensor.name);
  }
}

TEST_F(ReadManifest, SaysWhatIsWrongWhereAndWhatToDo) {
  const auto tensor = [](const std::string& fields) { return crafted("{\"a\":{" + fields + "}}"); };
  const std::string x = ": [read_manifest] " + (dir_ / "x") + ": ";
  EXPECT_EQ(refused(tensor(R"("dtype":"F32","shape":[-2],"data_offsets":[0,0])")),
            "Corrupt" + x + "tensor 'a' must have non-negative integers as shape. Got -2");
  EXPECT_EQ(
      refused(tensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])")),
      "Corrupt" + x + "tensor 'a' needs 12 bytes for its shape and dtype. Got 8 by data_offsets");
  EXPECT_EQ(refused(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])")),
            "Truncated" + x +
                "has 0 bytes of data, and its header describes 8; copy or download it again");
  EXPECT_EQ(refused(tensor(R"("dtype":"F32","shape":[0],"data_offsets":[4,4])")),
            "Corrupt" + x + "tensor 'a' must have data that begin at byte 0. Got 4 (a hole)");
  EXPECT_CONTAINS(refused(tensor(R"("dtype":"U8","shape":[0],"data_offsets":[8,4])")),
                  "must have data_offsets that do not decrease. Got [8, 4]");
  EXPECT_CONTAINS(refused(crafted(R"({"a":{"shape":[1],"data_offsets":[0,1]}})", "x")),
                  "tensor 'a' must have a field dtype");
  EXPECT_CONTAINS(
      refused(crafted(R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,1]}})",
                      "x")),
      "tensor 'a' must have non-negative integers as shape. Got 18446744073709551615");
  EXPECT_CONTAINS(refused(crafted("{ }").replace(0, 1, "\4")),
                  "has 3 bytes after the length of its header, which is 4; copy or download");
  EXPECT_CONTAINS(refused(crafted(std::string("{}\0 x", 5))), "Got an error at byte 3 of it");
  EXPECT_EQ(refused(crafted("{} x")), "Corrupt" + x +
                                          "must have JSON in UTF-8 as its header. Got an error at "
                                          "byte 4 of it");
  EXPECT_EQ(refused(R"({"weight_map":{"a":"../b"}})"),
            "Shard" + x + "must name its shards by bare file names. Got '../b'");
  EXPECT_EQ(refused(R"({"weight_map":{"a":"b"}})"),
            "Shard" + x +
                "names shard 'b', which is not beside it; save or download the checkpoint again, "
                "index and shards");
  EXPECT_EQ(refused("GGUF0000000"), "Unsupported" + x +
                                        "is a GGUF file; save the weights as safetensors, or with "
                                        "torch.save(model.state_dict(), ...)");
  EXPECT_CONTAINS(refused("once upon a time"), x + "is of no known format");
  write_bytes(dir_ / "torch", make_zip({{"r/data.pkl", "\x80\2}."}}));
  write_bytes(dir_ / "empty", crafted("{}"));
  EXPECT_CONTAINS(refused(R"({"weight_map":{"a":"empty","b":"torch"}})"),
                  "which lacks it; save or download");
  write_bytes(dir_ / "one", crafted(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})"));
  EXPECT_CONTAINS(refused(R"({"weight_map":{"a":"one","b":"torch"}})"),
                  "Shard" + x + "has shards of different formats, safetensors and torch.save");
  write_bytes(dir_ / "shard", "");
  EXPECT_EQ(refused(R"({"weight_map":{"a":"shard"}})"),
            "Truncated: [read_manifest] " + (dir_ / "shard") + ": is empty");
}

// The other tensors can be read; the sizes of this one follow the format.
TEST_F(ReadManifest, ListsATensorOfAnUnknownDtypeWithItsReason) {
  const std::string header = R"({"a":{"dtype":"F6_E3M2","shape":[4],"data_offsets":[2,5]},)"
                             R"("b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                             R"("c":{"dtype":"F128","shape":[],"data_offsets":[5,6]}})";
  const auto manifest = read(crafted(header, "bbaaac"));
  ASSERT_EQ(manifest.tensors.size(), 1u);
  EXPECT_EQ(manifest.tensors[0].name, "b");
  ASSERT_EQ(manifest.opaque.size(), 2u);
  EXPECT_EQ(manifest.opaque[0].name, "a");
  EXPECT_EQ(manifest.opaque[0].kind, EntryKind::Unreadable);
  EXPECT_EQ(manifest.opaque[0].text,
            "a tensor that has dtype 'F6_E3M2', which LibTorch lacks (save it as F8_E4M3, F16 or "
            "F32)");
  EXPECT_EQ(manifest.opaque[1].text, "a tensor that has the unknown dtype 'F128'");
  EXPECT_CONTAINS(refused(crafted(header, "bbaaa")), "Truncated: ");
  write_bytes(dir_ / "shard", crafted(header, "bbaaac"));
  const auto sharded = read(R"({"weight_map":{"a":"shard","b":"shard","c":"shard"}})");
  EXPECT_EQ(sharded.tensors.size(), 1u);
  EXPECT_EQ(sharded.opaque.size(), 2u);
}

// safetensors 0.8 rejects the same files, and its torch tensors hold pairs of F4.
TEST_F(ReadManifest, ChecksTheSizeOfDtypesOfLessThanAByte) {
  const auto file = [](const std::string& dtype, const std::string& shape, std::size_t bytes) {
    return crafted(R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape +
                       R"(,"data_offsets":[0,)" + std::to_string(bytes) + "]}}",
                   std::string(bytes, 'x'));
  };
  for (const auto& [dtype, shape, bytes] :
       std::vector<std::tuple<std::string, std::string, std::size_t>>{{"F4", "[1,3]", 2},
                                                                      {"F4", "[]", 1},
                                                                      {"F4", "[1]", 1},
                                                                      {"F6_E2M3", "[3]", 3},
                                                                      {"F6_E3M2", "[]", 1}}) {
    EXPECT_CONTAINS(refused(file(dtype, shape, bytes)),
                    "tensor 'a' must end at the end of a byte. Got");
  }
  EXPECT_CONTAINS(refused(file("F4", "[1,2]", 2)), "tensor 'a' needs 1 bytes for its shape");
  EXPECT_CONTAINS(refused(file("F4", "[2,3]", 4)), "tensor 'a' needs 3 bytes for its shape");
  EXPECT_CONTAINS(refused(file("F6_E3M2", "[4]", 2)), "tensor 'a' needs 3 bytes for its shape");
  EXPECT_CONTAINS(refused(file("F6_E3M2", "[4294967296,4294967296]", 0)),
                  "tensor 'a' has a shape whose product overflows");
  const auto readable = read(file("F4", "[2,8]", 8));
  ASSERT_EQ(readable.tensors.size(), 1u);
  EXPECT_STREQ(dtype_name(readable.tensors[0].dtype), "float4_e2m1fn_x2");
  EXPECT_EQ(readable.tensors[0].sizes, (std::vector<int64_t>{2, 4}));
  for (const char* shape : {"[2,3]", "[2,1]", "[0,3]"}) {
    const auto odd = read(file("F4", shape, std::string(shape) == "[0,3]" ? 0 : shape[3] - '0'));
    ASSERT_EQ(odd.opaque.size(), 1u);
    EXPECT_CONTAINS(odd.opaque[0].text, "whose last axis is odd, and LibTorch holds pairs");
  }
  EXPECT_EQ(read(file("F6_E2M3", "[8]", 6)).opaque.size(), 1u);
}

// The publisher's index may be short of a tensor: whether it is expected is for the load to say.
TEST_F(ReadManifest, AnIndexMayLackATensorOfAShard) {
  const std::string tensor = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  write_bytes(dir_ / "one", crafted(R"({"a":)" + tensor + R"(,"b":)" + tensor + "}"));
  write_bytes(dir_ / "two", crafted(R"({"c":)" + tensor + R"(,"b":)" + tensor + "}"));
  const auto manifest = read(R"({"weight_map":{"a":"one"}})");
  ASSERT_EQ(manifest.tensors.size(), 2u);
  EXPECT_EQ(manifest.tensors[1].name, "b");
  EXPECT_CONTAINS(refused(R"({"weight_map":{"a":"one","c":"two"}})"),
                  "tensor 'b' is in shard 'two' and in 'one', and the index has neither");
  EXPECT_CONTAINS(refused(R"({"weight_map":{"a":"one","b":"one","c":"two"}})"),
                  "tensor 'b' is in shard 'two', where the index has none");
}

TEST_F(ReadManifest, RejectsOtherThanRegularFiles) {
  const auto code = [&](const std::string& path) {
    try {
      read_manifest(path);
    } catch (const WeightsError& error) {
      EXPECT_EQ(error.file(), path);
      return error.code();
    }
    ADD_FAILURE() << "nothing was thrown";
    return WeightsErrorCode::Io;
  };
  EXPECT_EQ(code(dir_ / "none"), WeightsErrorCode::NotFound);
  EXPECT_EQ(code(dir_.path().string()), WeightsErrorCode::NotRegular);
  ASSERT_EQ(mkfifo((dir_ / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(code(dir_ / "fifo"), WeightsErrorCode::NotRegular);  // must not hang
  EXPECT_EQ(code("/dev/zero"), WeightsErrorCode::NotRegular);
  write_bytes(dir_ / "empty", "");
  EXPECT_EQ(code(dir_ / "empty"), WeightsErrorCode::Truncated);
  EXPECT_EQ(code(dir_ / "empty/x"), WeightsErrorCode::NotFound);
}

TEST_F(ReadManifest, RefusesWithoutPermission) {
  std::filesystem::permissions(dir_.path(), std::filesystem::perms(0755));
  write_bytes(dir_ / "x", crafted("{}"));
  std::filesystem::permissions(dir_ / "x", std::filesystem::perms::none);
  const bool root = geteuid() == 0;  // root can read everything, so change the user briefly
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  const auto message = refusal([&] { read_manifest(dir_ / "x"); });
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_CONTAINS(message, "cannot be opened: Permission denied");
}

}  // namespace
}  // namespace posenc::testing
