// Files that are not safetensors, or not quite: each rule of the reader has one that breaks it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>
#include <string>
#include <vector>

#include "io/read/file.h"
#include "io/safetensors_header.h"
#include "io/support.h"
#include "posenc/io/safetensors.h"

namespace posenc::testing {
namespace {

struct Case {
  std::string name;
  std::string file;
  std::string reason;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

// A header with one tensor `a`, given by the text of its three fields.
std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets,
                   const std::string& more = "") {
  return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets +
         more + "}}";
}

std::string two(const std::string& first, const std::string& second) {
  return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
         R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}";
}

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

const std::string k8(8, '\1');
const std::string kFine = tensor("\"F32\"", "[2]", "[0,8]");

std::vector<Case> cases() {
  std::string over_64(1, '[');
  over_64 += repeated("1,", 64) + "1]";
  return {
      // the length in front
      {"NineBytes", std::string("\2\0\0\0\0\0\0\0{", 9), "at least 10 bytes. Got 9"},
      {"ZeroHeader", std::string(16, '\0'), "must have 2 to 100000000 bytes. Got 0"},
      {"HugeHeader", std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10),
       "Got 18446744073709551615"},
      {"HeaderBeyondLimit", std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10), "Got 100000001"},
      {"HeaderBeyondFile", std::string("\3\0\0\0\0\0\0\0{}", 10), "must lie inside the file"},
      // JSON
      {"NotJson", crafted("not json"), "must be JSON in UTF-8"},
      {"Cut", crafted(kFine.substr(0, 30), k8), "must be JSON in UTF-8"},
      {"Junk", crafted(kFine + "x", k8), "must be JSON in UTF-8"},
      {"NulAndJunk", crafted(std::string("{}\0]]", 5)),
       "must be JSON in UTF-8. Got an error at byte 3"},
      {"TwoObjects", crafted("{}{}"), "must be JSON in UTF-8"},
      {"NulPadding", crafted(std::string("{}\0\0", 4)), "must be JSON in UTF-8"},
      {"ByteOrderMark", crafted("\xef\xbb\xbf{}"), "must be JSON in UTF-8"},
      {"BadUtf8", crafted("{\"\xff\":{}}"), "must be JSON in UTF-8"},
      {"OverlongUtf8", crafted("{\"\xc0\xaf\":{}}"), "must be JSON in UTF-8"},
      {"LoneSurrogate", crafted(R"({"\ud800":{}})"), "must be JSON in UTF-8"},
      {"Array", crafted("[1,2]"), "must be an object. Got an array"},
      {"Number", crafted("12"), "must be an object. Got a number"},
      {"DeepRoot", crafted(repeated("[", 100000)), "must be an object"},
      {"DeepUnknown",
       crafted(tensor("\"U8\"", "[8]", "[0,8]",
                      ",\"x\":" + repeated("[", 200000) + repeated("]", 200000)),
               k8),
       "nested too deep"},
      {"DeepShape", crafted(tensor("\"U8\"", repeated("[", 100000), "[0,8]"), k8), "Got an array"},
      // names and fields
      {"DuplicateName",
       crafted(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
               R"("a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
               k8),
       "name 'a' stands twice"},
      {"DuplicateEscaped",
       crafted(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
               R"("\u0061":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}})",
               k8),
       "name 'a' stands twice"},
      {"DuplicateField", crafted(tensor("\"F32\"", "[2]", "[0,8]", R"(,"shape":[2])"), k8),
       "field shape stands twice"},
      {"DuplicateMetadata", crafted(R"({"__metadata__":{},"__metadata__":{}})"),
       "name '__metadata__' stands twice"},
      {"DuplicateMetadataKey", crafted(R"({"__metadata__":{"k":"1","k":"2"}})"),
       "metadata key 'k' stands twice"},
      {"MetadataNumber", crafted(R"({"__metadata__":{"k":1}})"), "metadata must be strings"},
      {"MetadataObject", crafted(R"({"__metadata__":{"k":{}}})"), "metadata must be strings"},
      {"MetadataArray", crafted(R"({"__metadata__":["k"]})"), "must be an object. Got an array"},
      {"MetadataNull", crafted(R"({"__metadata__":null})"), "must be an object. Got null"},
      {"TensorNumber", crafted(R"({"a":3})"), "value of name 'a' must be an object"},
      {"TensorArray", crafted(R"({"a":[]})"), "value of name 'a' must be an object"},
      {"NoDtype", crafted(R"({"a":{"shape":[8],"data_offsets":[0,8]}})", k8), "dtype is missing"},
      {"NoShape", crafted(R"({"a":{"dtype":"U8","data_offsets":[0,8]}})", k8), "shape is missing"},
      {"NoOffsets", crafted(R"({"a":{"dtype":"U8","shape":[8]}})", k8), "data_offsets is missing"},
      {"Empty", crafted(R"({"a":{}})"), "dtype is missing"},
      // dtype
      {"DtypeNumber", crafted(tensor("3", "[2]", "[0,8]"), k8), "dtype must be a string"},
      {"DtypeNull", crafted(tensor("null", "[2]", "[0,8]"), k8),
       "dtype must be a string. Got null"},
      {"DtypeUnknown", crafted(tensor("\"F128\"", "[2]", "[0,8]"), k8), "'F128' is unknown"},
      {"DtypeCase", crafted(tensor("\"f32\"", "[2]", "[0,8]"), k8), "'f32' is unknown"},
      {"F4", crafted(tensor("\"F4\"", "[16]", "[0,8]"), k8), "'F4' has less than a byte"},
      {"F6E2M3", crafted(tensor("\"F6_E2M3\"", "[8]", "[0,6]"), k8), "has less than a byte"},
      {"F6E3M2", crafted(tensor("\"F6_E3M2\"", "[8]", "[0,6]"), k8), "has less than a byte"},
      {"BoolTwo", crafted(tensor("\"BOOL\"", "[8]", "[0,8]"), "\1\1\1\2\1\1\1\1"),
       "BOOL bytes must be 0 or 1. Got 2 at byte 3"},
      // shape
      {"ShapeNumber", crafted(tensor("\"F32\"", "2", "[0,8]"), k8), "shape must be an array"},
      {"ShapeNegative", crafted(tensor("\"F32\"", "[-2]", "[0,8]"), k8),
       "shape must be non-negative integers. Got -2"},
      {"ShapeMinusZero", crafted(tensor("\"F32\"", "[-0]", "[0,0]")), "non-negative integers"},
      {"ShapeFloat", crafted(tensor("\"F32\"", "[2.0]", "[0,8]"), k8), "Got '2.0'"},
      {"ShapeExponent", crafted(tensor("\"F32\"", "[2e0]", "[0,8]"), k8), "Got '2e0'"},
      {"ShapeString", crafted(tensor("\"F32\"", "[\"2\"]", "[0,8]"), k8), "Got a string"},
      {"ShapeTrue", crafted(tensor("\"F32\"", "[true]", "[0,8]"), k8), "Got true"},
      {"ShapeObject", crafted(tensor("\"F32\"", "[{}]", "[0,8]"), k8), "Got an object"},
      {"ShapeTooLarge", crafted(tensor("\"U8\"", "[9223372036854775808]", "[0,8]"), k8),
       "Got 9223372036854775808"},
      {"ShapeBeyond64Bits", crafted(tensor("\"U8\"", "[99999999999999999999]", "[0,8]"), k8),
       "non-negative integers"},
      {"ShapeTooMany", crafted(tensor("\"U8\"", over_64, "[0,1]"), "\1"), "at most 64"},
      // 2^32 * 2^32 wraps to 0, 2^62 * 4 bytes to 0, and 3 * 0x5555555555555556 to 2
      {"ProductOverflow", crafted(tensor("\"U8\"", "[4294967296,4294967296]", "[0,0]")),
       "product of its shape overflows"},
      {"BytesOverflow", crafted(tensor("\"F32\"", "[4611686018427387904]", "[0,0]")),
       "product of its shape overflows"},
      {"ProductWraps", crafted(tensor("\"U8\"", "[6148914691236517206,3]", "[0,2]"), "\1\1"),
       "product of its shape overflows"},
      {"OverflowBehindZero", crafted(tensor("\"U8\"", "[0,4294967296,4294967296]", "[0,0]")),
       "product of its shape overflows"},
      {"SizeTooSmall", crafted(tensor("\"F32\"", "[3]", "[0,8]"), k8), "need 12 bytes. Got 8"},
      {"SizeTooLarge", crafted(tensor("\"F32\"", "[1]", "[0,8]"), k8), "need 4 bytes. Got 8"},
      // offsets
      {"OffsetsOne", crafted(tensor("\"F32\"", "[2]", "[0]"), k8), "two non-negative integers"},
      {"OffsetsThree", crafted(tensor("\"F32\"", "[2]", "[0,8,8]"), k8), "two non-negative"},
      {"OffsetsNegative", crafted(tensor("\"F32\"", "[2]", "[-8,0]"), k8), "Got -8"},
      {"OffsetsFloat", crafted(tensor("\"F32\"", "[2]", "[0.0,8]"), k8), "Got '0.0'"},
      {"OffsetsReversed", crafted(tensor("\"F32\"", "[2]", "[8,0]"), k8), "must not decrease"},
      {"OffsetsWrap", crafted(tensor("\"F32\"", "[2]", "[18446744073709551608,0]"), k8),
       "must not decrease"},
      {"OffsetsFarAway",
       crafted(tensor("\"F32\"", "[2]", "[18446744073709551600,18446744073709551608]"), k8),
       "the file has only 8 bytes of data"},
      {"Truncated", crafted(kFine, k8.substr(1)), "is it truncated?"},
      {"Trailing", crafted(kFine, k8 + "x"), "Got 1 trailing bytes"},
      {"TrailingAlone", crafted("{}", "x"), "Got 1 trailing bytes"},
      {"Overlap", crafted(two("[0,4]", "[3,7]"), k8), "must begin at byte 4. Got 3 (an overlap)"},
      {"SameRange", crafted(two("[0,4]", "[0,4]"), k8.substr(4)), "(an overlap)"},
      {"Hole", crafted(two("[0,4]", "[5,9]"), k8 + "x"), "must begin at byte 4. Got 5 (a hole)"},
      {"HoleInFront", crafted(tensor("\"U8\"", "[7]", "[1,8]"), k8), "Got 1 (a hole)"},
      {"EmptyElsewhere", crafted(tensor("\"U8\"", "[0]", "[5,5]")), "only 0 bytes of data"},
  };
}

class SafetensorsRefuses : public ::testing::TestWithParam<Case> {};

TEST_P(SafetensorsRefuses, WithTheRuleAndTheFile) {
  const TempDir dir;
  const std::string path = dir / "bad.safetensors";
  write_bytes(path, GetParam().file);
  const auto message = refusal([&] { load_safetensors(path); });
  EXPECT_CONTAINS(message, "[load_safetensors] " + path + ": ");
  EXPECT_CONTAINS(message, GetParam().reason);
  EXPECT_LT(message.size(), 600u);
}

INSTANTIATE_TEST_SUITE_P(Rules, SafetensorsRefuses, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST(SafetensorsAccepts, WhatTheReferenceAccepts) {
  const TempDir dir;
  const auto loads = [&](const std::string& bytes) {
    write_bytes(dir / "x", bytes);
    return load_safetensors(dir / "x").tensors;
  };
  EXPECT_TRUE(loads(crafted("{}")).is_empty());
  EXPECT_TRUE(loads(crafted("  {\n}\t ")).is_empty());
  EXPECT_EQ(loads(crafted(two("[4,8]", "[0,4]"), k8)).size(), 2u);  // any order
  EXPECT_EQ(loads(crafted(tensor("\"F32\"", "[2]", "[0,8]",
                                 R"(,"x":{"shape":[[{"dtype":1}],null,-1.5]},"y":true)"),
                          k8))
                .size(),
            1u);
  // Neither aligned nor of a length that is a multiple of anything.
  const auto odd = loads(crafted(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                 R"("b":{"dtype":"F64","shape":[1],"data_offsets":[1,9]}})",
                                 std::string("\7\0\0\0\0\0\0\xf0\x3f", 9)));
  EXPECT_EQ(odd["b"].item<double>(), 1.0);
}

TEST(SafetensorsRefusesPath, ThatIsNoRegularFile) {
  const TempDir dir;
  const auto message = [&](const std::string& path) {
    return refusal([&] { load_safetensors(path); });
  };
  EXPECT_CONTAINS(message(dir / "none"), (dir / "none") + ": cannot be opened: No such file");
  EXPECT_CONTAINS(message(dir.path().string()), "must be a regular file. Got a directory");
  ASSERT_EQ(mkfifo((dir / "fifo").c_str(), 0600), 0);
  EXPECT_CONTAINS(message(dir / "fifo"), "must be a regular file. Got a FIFO");  // and no hang
  EXPECT_CONTAINS(message("/dev/zero"), "must be a regular file. Got a device");
  write_bytes(dir / "empty", "");
  EXPECT_CONTAINS(message(dir / "empty"), "the file is empty");
}

TEST(SafetensorsRefusesPath, WithoutPermission) {
  const TempDir dir;
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  write_bytes(dir / "x", crafted("{}"));
  std::filesystem::permissions(dir / "x", std::filesystem::perms::none);
  const bool root = geteuid() == 0;  // may read everything, so become somebody else for a moment
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  const auto message = refusal([&] { load_safetensors(dir / "x"); });
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_CONTAINS(message, "cannot be opened: Permission denied");
}

TEST(InputFile, NoticesThatTheFileShrank) {
  const TempDir dir;
  write_bytes(dir / "x", std::string(100, 'x'));
  const io::InputFile file(dir / "x");
  std::filesystem::resize_file(dir / "x", 60);
  EXPECT_EQ(file.read(40, 20), std::string(20, 'x'));
  try {
    file.read(50, 50);
    FAIL() << "nothing was thrown";
  } catch (const WeightsError& error) {
    EXPECT_CONTAINS(error.what(), "ended at byte 60 of the 100");
  }
}

// Whatever the bytes: entries that lie in the data, or a WeightsError, never anything else.
TEST(SafetensorsMutations, ParseOrAreRefused) {
  const auto original = two("[0,4]", "[4,8]");
  std::mt19937 random(7);
  constexpr int kRounds = 50000;
  int refused = 0;
  for (int round = 0; round < kRounds; ++round) {
    auto json = original;
    const auto edits = 1 + random() % 3;
    for (unsigned i = 0; i < edits; ++i) {
      switch (random() % 3) {
        case 0: json[random() % json.size()] = static_cast<char>(random()); break;
        case 1: json.erase(random() % json.size(), 1); break;
        default: json.insert(random() % json.size(), 1, "0159[]{},:\"-e"[random() % 13]); break;
      }
    }
    try {
      for (const auto& entry : io::parse_safetensors_header(json, 8).entries) {
        ASSERT_LE(entry.begin, entry.end) << json;
        ASSERT_LE(entry.end, 8u) << json;
      }
    } catch (const WeightsError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, kRounds / 2);
  EXPECT_LT(refused, kRounds);  // some change no more than a name
}

}  // namespace
}  // namespace posenc::testing
