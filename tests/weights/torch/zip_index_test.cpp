#include "weights/torch/zip/index.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "weights/files.h"
#include "weights/torch/make_zip.h"
#include "weights/torch/zip/archive.h"
#include "weights/torch/zip/inflate.h"

namespace posenc::testing::zip_index_test {
namespace {

using namespace std::string_literals;
using io::InputFile;
using io::ZipIndex;

const ZipParts kTwo = zip_parts({{"r/a", "alpha"}, {"r/b", "beta"}});

std::string refused(const std::string& bytes) {
  return refusal([&] {
    const auto file = InputFile::of_bytes(bytes);
    ZipIndex index(file);
  });
}

// The error for an archive whose first directory entry has other bytes at `at`.
std::string refused_entry(std::size_t at, const std::string& bytes) {
  ZipParts parts = kTwo;
  parts.entries[0].replace(at, bytes.size(), bytes);
  return refused(parts.join());
}

std::string refused_local(std::size_t at, const std::string& bytes) {
  ZipParts parts = kTwo;
  parts.locals[0].replace(at, bytes.size(), bytes);
  return refused(parts.join());
}

TEST(ZipIndex, FindsRecords) {
  const std::string bytes = kTwo.join();
  const auto file = InputFile::of_bytes(bytes);
  const ZipIndex index(file);
  ASSERT_EQ(index.records().size(), 2u);
  EXPECT_EQ(index.records()[0].name, "r/a");
  ASSERT_NE(index.find("r/b"), nullptr);
  EXPECT_EQ(bytes.substr(index.find("r/b")->offset, index.find("r/b")->bytes), "beta");
  EXPECT_EQ(index.read(*index.find("r/a")), "alpha");
  EXPECT_EQ(index.find("r/c"), nullptr);
  EXPECT_EQ(index.find("R/A"), nullptr);
  EXPECT_TRUE(io::looks_like_zip(file));
}

TEST(ZipIndex, ReadsManyAndLarge) {
  std::vector<std::pair<std::string, std::string>> records;
  for (int i = 0; i < 2000; ++i) {
    records.emplace_back("r/" + std::to_string(i), std::string(i % 7 == 0 ? 9000 : i % 50, 'x'));
  }
  const std::string bytes = make_zip(records);
  const auto file = InputFile::of_bytes(bytes);
  const ZipIndex index(file);
  for (const auto& [name, data] : records) EXPECT_EQ(index.read(*index.find(name)), data);
}

// 64-bit fields, and a local header whose sizes are in a data descriptor.
TEST(ZipIndex, ReadsZip64) {
  ZipParts parts = kTwo;
  parts.entries[1].replace(20, 8, std::string(8, '\xff'));
  parts.entries[1].replace(42, 4, std::string(4, '\xff'));
  parts.entries[1].replace(30, 2, little(28, 2));
  parts.entries[1] += little(1, 2) + little(24, 2) + little(4, 8) + little(4, 8) +
                      little(parts.locals[0].size(), 8);
  parts.locals[1].replace(6, 2, little(8, 2));
  parts.locals[1].replace(18, 8, std::string(8, '\0'));
  parts.locals[1] += "PK\7\10" + std::string(20, '\0');
  const uint64_t locals = parts.locals[0].size() + parts.locals[1].size();
  const uint64_t directory = parts.entries[0].size() + parts.entries[1].size();
  parts.before_end = "PK\6\6" + little(44, 8) + little(0, 12) + little(2, 8) + little(2, 8) +
                     little(directory, 8) + little(locals, 8) + "PK\6\7" + little(0, 4) +
                     little(locals + directory, 8) + little(1, 4);
  const std::string bytes = parts.join();
  const auto file = InputFile::of_bytes(bytes);
  const ZipIndex index(file);
  EXPECT_EQ(index.read(*index.find("r/b")), "beta");

  parts.before_end[24] = 3;  // entries on this disk
  EXPECT_CONTAINS(refused(parts.join()), "Corrupt: is a damaged zip archive: its two end records");
  parts.before_end[24] = 2;
  parts.before_end[4] = 45;
  EXPECT_CONTAINS(refused(parts.join()), "its zip64 record is missing");
  for (const std::size_t before : {10, 6}) {  // the directory's size and offset
    std::string other = bytes;
    ++other[other.size() - before];
    EXPECT_CONTAINS(refused(other), "its two end records");
  }
  const auto refused_field = [&](std::size_t at, uint64_t value) {
    std::string other = bytes;
    return refused(other.replace(locals + parts.entries[0].size() + 49 + at, 2, little(value, 2)));
  };
  EXPECT_CONTAINS(refused_field(0, 2), "record 'r/b' lacks its zip64 field");
  EXPECT_CONTAINS(refused_field(2, 25), "record 'r/b' lacks its zip64 field");
  EXPECT_CONTAINS(refused_field(2, 23), "record 'r/b' has a zip64 field that is too short");
}

TEST(ZipIndex, PassesOverComments) {
  ZipParts parts = kTwo;
  parts.entries[0].replace(32, 2, little(4, 2));
  parts.entries[0] += "note";
  const std::string bytes = parts.join();
  const auto file = InputFile::of_bytes(bytes);
  const ZipIndex index(file);
  EXPECT_EQ(index.read(*index.find("r/b")), "beta");
  EXPECT_CONTAINS(refused_entry(32, "\xff\xff"), "its directory is cut off");
}

TEST(ZipIndex, RefusesADamagedEnd) {
  const std::string whole = kTwo.join();
  EXPECT_CONTAINS(refused(whole.substr(0, whole.size() - 1)), "Truncated: is cut off");
  EXPECT_CONTAINS(refused("PK\3\4"), "Truncated: is cut off");
  EXPECT_CONTAINS(refused(""), "Truncated: is cut off");
  EXPECT_CONTAINS(refused(whole + "x"), "Corrupt: is a damaged zip archive: it has bytes after");
  ZipParts parts = kTwo;
  parts.count = 3;
  EXPECT_CONTAINS(refused(parts.join()), "its directory lies outside the file");
  parts.count = 1;
  EXPECT_CONTAINS(refused(parts.join()), "its directory has bytes after its last entry");
  parts = kTwo;
  parts.before_end = "gap";
  EXPECT_CONTAINS(refused(parts.join()), "its directory lies outside the file");
  parts = kTwo;
  parts.entries[1].pop_back();
  EXPECT_CONTAINS(refused(parts.join()), "its directory is cut off");
  std::string split = whole;
  split[whole.size() - 14] = 1;  // entries on this disk
  EXPECT_CONTAINS(refused(split), "it is one part of a split archive");
}

TEST(ZipIndex, RefusesAHugeDirectory) {
  constexpr uint64_t kHuge = (uint64_t{1} << 28) + 1;
  const TempDir dir;
  write_bytes(dir / "x", "PK\3\4");
  std::filesystem::resize_file(dir / "x", kHuge);
  std::ofstream(dir / "x", std::ios::binary | std::ios::app)
      << "PK\5\6" + little(0, 4) + little(1, 2) + little(1, 2) + little(kHuge, 4) + little(0, 6);
  const InputFile file(dir / "x");
  EXPECT_CONTAINS(refusal([&] { ZipIndex index(file); }),
                  "LimitExceeded: has a zip directory of more than 256 MiB");
}

TEST(ZipIndex, RefusesADamagedEntry) {
  EXPECT_CONTAINS(refused_entry(0, "PK\1\3"), "its directory is cut off");
  EXPECT_CONTAINS(refused_entry(8, "\1"), "Unsupported: is an encrypted archive (record 'r/a')");
  EXPECT_CONTAINS(refused_entry(24, "\6"), "record 'r/a' is stored, but has two sizes");
  EXPECT_CONTAINS(refused_entry(24, "\xff\xff\xff\xff"), "record 'r/a' lacks its zip64 field");
  EXPECT_CONTAINS(refused_entry(42, "\1"), "record 'r/a' differs from its entry");
  EXPECT_CONTAINS(refused_entry(42, "\0\0\0\1"s), "overlaps another or lies outside the file");
  EXPECT_CONTAINS(refused_entry(46, "/"), "record '//a' has a forbidden name");
  EXPECT_CONTAINS(refused_entry(46, ".."), "record '..a' differs");
  EXPECT_CONTAINS(refused_entry(47, "\\"), "has a forbidden name");
  EXPECT_CONTAINS(refused_entry(47, "\0"s), "record 'r?a' has a forbidden name");
  EXPECT_CONTAINS(refused(make_zip({{"r/../a", ""}})), "has a forbidden name");
  EXPECT_CONTAINS(refused(make_zip({{"r/..", ""}})), "has a forbidden name");
  EXPECT_CONTAINS(refused(make_zip({{"", ""}})), "has a forbidden name");
  EXPECT_CONTAINS(refused(make_zip({{"r/a", "1"}, {"r/a", "2"}})),
                  "DuplicateKey: holds two records of name 'r/a'");
}

TEST(ZipIndex, RefusesALocalHeaderThatDiffers) {
  const char* differs = "record 'r/a' differs from its entry in the directory";
  EXPECT_CONTAINS(refused_local(0, "PK\3\5"), differs);
  EXPECT_CONTAINS(refused_local(6, "\1"), differs);
  EXPECT_CONTAINS(refused_local(8, "\x8"), differs);
  EXPECT_CONTAINS(refused_local(18, "\4"), differs);
  EXPECT_CONTAINS(refused_local(18, std::string(8, '\0')), differs);  // and no data descriptor
  EXPECT_CONTAINS(refused_local(22, "\6"), differs);
  EXPECT_CONTAINS(refused_local(26, "\2"), differs);
  EXPECT_CONTAINS(refused_local(30, "x"), differs);
  EXPECT_CONTAINS(refused_local(28, "\1"), "record 'r/a' overlaps another");
}

TEST(ZipIndex, ReadsOnlyWhatIsStoredAndWhole) {
  ZipParts parts = kTwo;
  parts.locals[0][8] = parts.entries[0][10] = '\x8';
  std::string bytes = parts.join();
  const auto packed = InputFile::of_bytes(bytes);
  const ZipIndex index(packed);
  EXPECT_CONTAINS(
      refusal([&] { index.read(*index.find("r/a")); }),
      "Unsupported: is a compressed archive (record 'r/a'); save it again with PyTorch");
  EXPECT_CONTAINS(refusal([&] { io::inflate(index, *index.find("r/a"), 100); }),
                  "record 'r/a' does not unpack to its size");
  EXPECT_CONTAINS(refusal([&] { io::inflate(index, *index.find("r/b"), 3); }),
                  "LimitExceeded: has a record 'r/b' that is too large to unpack");
  EXPECT_EQ(io::inflate(index, *index.find("r/b"), 4), "beta");

  for (const char size : {5, 6}) {  // the uncompressed size of these bytes, and one more
    parts = zip_parts({{"r/a", "\1\5\0\xfa\xff"s + "alpha"}});
    parts.locals[0][8] = parts.entries[0][10] = '\x8';
    parts.locals[0][22] = parts.entries[0][24] = size;
    bytes = parts.join();
    const auto deflated = InputFile::of_bytes(bytes);
    const ZipIndex records(deflated);
    const auto unpack = [&] { return io::inflate(records, *records.find("r/a"), 100); };
    if (size == 5) {
      EXPECT_EQ(unpack(), "alpha");
    } else {
      EXPECT_CONTAINS(refusal(unpack), "record 'r/a' does not unpack to its size");
    }
  }

  parts = kTwo;
  parts.entries[0].replace(16, 4, little(0xdead, 4));
  parts.entries[1].replace(16, 4, little(0x4cd6b1a1, 4));
  bytes = parts.join();
  const auto summed = InputFile::of_bytes(bytes);
  const ZipIndex sums(summed);
  EXPECT_CONTAINS(refusal([&] { sums.read(*sums.find("r/a")); }),
                  "record 'r/a' does not have the checksum that it should");
}

TEST(Archive, TellsItsKind) {
  const auto kind = [](const std::vector<std::pair<std::string, std::string>>& records) {
    const std::string bytes = make_zip(records);
    const auto file = InputFile::of_bytes(bytes);
    return io::Archive(file).format();
  };
  const auto why = [&](const std::vector<std::pair<std::string, std::string>>& records) {
    return refusal([&] { kind(records); });
  };
  EXPECT_EQ(kind({{"any.name/data.pkl", ""}}), WeightsFormat::TorchSave);
  EXPECT_EQ(kind({{"r/data.pkl", ""}, {"r/constants.pkl", ""}}), WeightsFormat::TorchScript);
  EXPECT_EQ(kind({{"r/archive_format", "pt2"}, {"r/byteorder", "little"}}), WeightsFormat::Pt2);
  EXPECT_CONTAINS(why({{"r/archive_format", "pt3"}}), "Unsupported: is an archive of the unknown");
  EXPECT_CONTAINS(why({{"r/x", ""}, {"q/data.pkl", ""}}), "UnknownFormat: is a zip archive, but");
  EXPECT_CONTAINS(why({}), "UnknownFormat: is a zip archive, but not one of PyTorch; save");
  EXPECT_CONTAINS(why({{"r/data.pkl", ""}, {"r/byteorder", "big"}}),
                  "Unsupported: was saved on a big-endian machine; load it with Python");
  EXPECT_CONTAINS(why({{"r/data.pkl", ""}, {"r/byteorder", "?"}}),
                  "Corrupt: must have little or big as its byteorder. Got '?'");
  EXPECT_CONTAINS(why({{"r/model.json", ""}}), "TorchScript of a PyTorch before 1.4");
  EXPECT_CONTAINS(why({{"r/.data/extern_modules", ""}}), "is a torch.package");
  EXPECT_CONTAINS(why({{"serialized_state_dict.pt", ""}}), "of a PyTorch before 2.8");
}

}  // namespace
}  // namespace posenc::testing::zip_index_test
