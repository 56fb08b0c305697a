#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "base/text.h"
#include "weights/common/file.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

std::string refused(const std::string& path) {
  return refusal([&] { io::InputFile file(path); });
}

TEST(InputFile, RejectsOtherThanRegularFilesAtOnce) {
  const TempDir dir;
  EXPECT_CONTAINS(refused(dir / "none"),
                  "NotFound: " + (dir / "none") + ": cannot be opened: No such");
  EXPECT_CONTAINS(refused(dir.path()), "NotRegular: " + dir.path().string() +
                                           ": must be a regular file. Got a directory");
  EXPECT_CONTAINS(refused("/dev/null"),
                  "NotRegular: /dev/null: must be a regular file. Got a device");
  ASSERT_EQ(mkfifo((dir / "fifo").c_str(), 0600), 0);
  EXPECT_CONTAINS(refused(dir / "fifo"), "must be a regular file. Got a FIFO");
  write_bytes(dir / "empty", "");
  EXPECT_CONTAINS(refused(dir / "empty"), "Truncated: " + (dir / "empty") + ": is empty");
  EXPECT_CONTAINS(refused(dir / "empty/below"), "NotFound: ");
}

// The system would open what is before the zero byte, and a message would end there.
TEST(InputFile, RejectsAZeroByteInAPath) {
  const TempDir dir;
  write_bytes(dir / "a", "text");
  const std::string path = (dir / "a") + std::string("\0b", 2);
  EXPECT_CONTAINS(refused(path), "a?b: must be a path without a zero byte");
  EXPECT_FALSE(io::may_exist(path));
}

TEST(InputFile, ReadsWhereItIsAsked) {
  const TempDir dir;
  write_bytes(dir / "x", "0123456789");
  const io::InputFile file(dir / "x");
  const auto memory = io::InputFile::of_bytes("0123456789");
  for (const io::InputFile* each : {&file, &memory}) {
    EXPECT_EQ(each->size(), 10u);
    EXPECT_EQ(each->read(3, 4), "3456");
    EXPECT_EQ(each->read(10, 0), "");
    EXPECT_CONTAINS(refusal([&] { each->read(8, 3); }), "Truncated: ");
    EXPECT_CONTAINS(refusal([&] { each->read(11, 1); }), "Truncated: ");
    EXPECT_CONTAINS(refusal([&] { each->read(UINT64_MAX / 2, 1); }), "");
  }
  EXPECT_EQ(file.path(), dir / "x");
  EXPECT_EQ(memory.path(), "");
  const auto part = io::InputFile::part_of(file, 2, 3);
  EXPECT_EQ(part.read(1, 2), "34");
  EXPECT_CONTAINS(refusal([&] { part.read(1, 3); }), "Truncated: ");
}

// Each of the two is enough to detect that a file is a different one.
TEST(InputFile, IsKnownByItsInodeAndTheNanosecond) {
  const TempDir dir;
  const auto written = [&](const std::string& path, long nanosecond) {
    write_bytes(path, "x");
    const timespec times[] = {{1'000'000, nanosecond}, {1'000'000, nanosecond}};
    EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    return platform::stamp_of(path);
  };
  const auto stamp = written(dir / "x", 1);
  EXPECT_EQ(stamp, written(dir / "x", 1));
  EXPECT_NE(stamp, written(dir / "x", 2));
  EXPECT_NE(stamp, written(dir / "y", 1));
}

TEST(InputFile, NoticesThatTheFileShrank) {
  const TempDir dir;
  write_bytes(dir / "x", std::string(1000000, 'x'));
  const io::InputFile file(dir / "x");
  std::filesystem::resize_file(dir / "x", 60);
  EXPECT_CONTAINS(refusal([&] { file.read(50, 50); }),
                  "Truncated: " + (dir / "x") + ": ended at byte 60 of the 1000000 that it had");
}

TEST(InputFile, TooManyOpenFilesHaveARemedy) {
  const TempDir dir;
  write_bytes(dir / "x", "0123456789");
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto said = refusal([&] { io::InputFile file(dir / "x"); });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_CONTAINS(said, "Io: " + (dir / "x") + ": cannot be opened: Too many open files");
  EXPECT_CONTAINS(said, "ulimit -n");
}

TEST(InputFile, HolesAreNotReadIntoMemory) {
  const TempDir dir;
  write_bytes(dir / "x", "0123456789");
  std::filesystem::resize_file(dir / "x", std::uintmax_t{6} << 30);
  const io::InputFile file(dir / "x");
  EXPECT_CONTAINS(refusal([&] { file.read(0, std::size_t{4} << 30); }), "on disk, and holes");
  EXPECT_EQ(file.read(5, 6), std::string("56789\0", 6));
}

// The positions of the data decide: blocks may belong to another part of the file, or their number
// be unavailable.
TEST(InputFile, HolesAreThoseOfWhatIsAskedFor) {
  const TempDir dir;
  constexpr std::size_t kMegabyte = 1 << 20;
  write_bytes(dir / "x", "0123456789");
  std::filesystem::resize_file(dir / "x", std::uintmax_t{5} << 30);
  std::ofstream(dir / "x", std::ios::binary | std::ios::app) << std::string(70 * kMegabyte, 'x');
  const io::InputFile file(dir / "x");
  EXPECT_CONTAINS(refusal([&] { file.read(0, std::size_t{4} << 30); }), "on disk, and holes");
  const auto part = file.read((std::uint64_t{5} << 30) - 100 * kMegabyte, 170 * kMegabyte);
  EXPECT_EQ(part[100 * kMegabyte - 1], '\0');
  EXPECT_EQ(part[100 * kMegabyte], 'x');
}

TEST(WeightsError, SaysWhatIsKnown) {
  const WeightsError error(WeightsErrorCode::Corrupt, "is odd", "make it even");
  EXPECT_STREQ(error.what(), "is odd; make it even");
  const WeightsError full = error.in_tensor("a.b").in_file("f.pt").in_function("load_weights");
  EXPECT_STREQ(full.what(), "[load_weights] f.pt: tensor 'a.b' is odd; make it even");
  EXPECT_STREQ(full.in_file("other").in_tensor("c").what(), full.what());
  EXPECT_EQ(full.code(), WeightsErrorCode::Corrupt);
  EXPECT_EQ(full.tensor(), "a.b");
  EXPECT_STREQ(to_string(WeightsErrorCode::TieConflict), "TieConflict");
  EXPECT_CONTAINS(refusal([] {
                    io::in_context("inspect", "f.pt", [] { throw WeightsError({}, "is wrong"); });
                  }),
                  "NotFound: [inspect] f.pt: is wrong");
}

TEST(InQuotes, IsFitForAMessage) {
  EXPECT_EQ(io::in_quotes("a\nb\x7f"), "'a?b?'");
  EXPECT_EQ(io::in_quotes("\u00e9"), "'\u00e9'");
  EXPECT_EQ(io::in_quotes("a\xff"), "'a?'");
  EXPECT_EQ(io::in_quotes("a\u009b[2J"), "'a?[2J'");
  EXPECT_EQ(io::in_quotes(std::string(119, 'x') + "\u00e9"), "'" + std::string(119, 'x') + "...'");
}

}  // namespace
}  // namespace posenc::testing
