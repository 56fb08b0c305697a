// A save is all or nothing: on a full disk, when killed, and when writing is not permitted.
#include <ATen/ATen.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <string>
#include <thread>

#include "posenc/weights/load.h"
#include "posenc/weights/safetensors.h"
#include "posenc/weights/save.h"
#include "support/compare.h"
#include "support/seed.h"
#include "weights/child.h"
#include "weights/common/file.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

StateDict filled(int64_t size, float value) {
  StateDict tensors;
  for (const char* name : {"a", "b", "c"}) tensors.insert(name, at::full({size}, value));
  return tensors;
}

class AtomicSave : public ::testing::TestWithParam<std::string> {};

// A limit on the file size simulates a full disk: write() fails in the middle of the data.
TEST_P(AtomicSave, AFullDiskLeavesTheOldFile) {
  const TempDir dir;
  const std::string path = dir / GetParam();
  save_tensors(path, filled(10, 1));
  const auto old = read_bytes(path);
  const auto large = filled(100000, 2);
  const int status = in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{300000, 300000};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      save_tensors(path, large);
    } catch (const WeightsError& error) {
      const std::string text = error.what();
      return text.find(path + ": cannot be written: File too large") == std::string::npos ? 2 : 0;
    }
    return 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_bytes(path), old);
  EXPECT_EQ(dir.entries(), 1u);
}

TEST_P(AtomicSave, AKillLeavesAWholeFile) {
  const TempDir dir;
  const std::string path = dir / GetParam();
  const auto ones = filled(200000, 1), twos = filled(200000, 2);
  save_tensors(path, ones);
  std::mt19937 random(testing::seed(3));
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) {
        save_tensors(path, twos);
        save_tensors(path, ones);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 20000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const auto loaded = load_tensors(path);
    const auto value = loaded["a"][0].item<float>();
    for (const auto& item : loaded) {
      EXPECT_TRUE(at::equal(item.value(), at::full({200000}, value))) << "round " << round;
    }
    EXPECT_LE(dir.entries(), 2u) << "round " << round;  // one may be left until the next save
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, AtomicSave, ::testing::Values("x.safetensors", "x.pt"),
                         [](const auto& info) { return info.index == 0 ? "safetensors" : "pt"; });

TEST(AtomicFile, WithoutACommitNothingIsLeft) {
  const TempDir dir;
  write_bytes(dir / "x", "old");
  {
    io::AtomicFile file(dir / "x");
    file.write("new content", 11);
    EXPECT_EQ(read_bytes(dir / "x"), "old");
  }
  EXPECT_EQ(read_bytes(dir / "x"), "old");
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(AtomicFile, TheNextWriterRemovesWhatAKilledOneLeft) {
  const TempDir dir;
  const auto left = dir / (platform::temporary_prefix() + "1-0.tmp");
  const auto in_use = dir / (platform::temporary_prefix() + "2-0.tmp");
  write_bytes(left, "left");
  write_bytes(in_use, "in use");
  write_bytes(dir / ".posenc-notes", "not ours");
  const int held = open(in_use.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(flock(held, LOCK_EX), 0);
  io::AtomicFile(dir / "x");
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_EQ(read_bytes(in_use), "in use");
  EXPECT_EQ(dir.entries(), 2u);
  close(held);
}

TEST(AtomicFile, MustHaveAName) {
  EXPECT_CONTAINS(message_of([] { io::AtomicFile(""); }),
                  "cannot be written: a file must have a name. Got an empty one");
}

// Locks on another host are not visible over the network, so a file that it modified today may be
// in use.
TEST(AtomicFile, AnotherHostsFileIsLeftForADay) {
  const TempDir dir;
  const auto fresh = dir / ".posenc-0123456789ab-1-0.tmp",
             old = dir / ".posenc-0123456789ab-2-0.tmp";
  const auto older_version = dir / ".posenc-3-0.tmp";
  for (const auto& path : {fresh, old, older_version}) write_bytes(path, "of another host");
  using namespace std::chrono_literals;
  const auto now = std::filesystem::last_write_time(fresh);
  std::filesystem::last_write_time(fresh, now - 23h);
  std::filesystem::last_write_time(old, now - 25h);
  save_safetensors(dir / "x", filled(1, 1));
  EXPECT_TRUE(std::filesystem::exists(fresh));
  EXPECT_TRUE(std::filesystem::exists(older_version));
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_GT(platform::temporary_prefix().size(), std::string(".posenc--").size());
}

TEST(AtomicFile, TwoWritersInOneFolder) {
  const TempDir dir;
  io::AtomicFile first(dir / "a"), second(dir / "b"), third(dir / "a");
  first.write("1", 1);
  second.write("2", 1);
  third.write("3", 1);
  first.commit();
  second.commit();
  EXPECT_EQ(read_bytes(dir / "a") + read_bytes(dir / "b"), "12");
  third.commit();
  EXPECT_EQ(read_bytes(dir / "a"), "3");
  EXPECT_EQ(dir.entries(), 2u);
}

TEST(AtomicFile, ACommitReplaces) {
  const TempDir dir;
  write_bytes(dir / "x", "old");
  io::AtomicFile file(dir / "x");
  file.write("ne", 2);
  file.write("w", 1);
  file.commit();
  EXPECT_EQ(read_bytes(dir / "x"), "new");
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(AtomicFile, ACommitThatFailsLeavesNothing) {
  const TempDir dir;
  {
    io::AtomicFile file(dir / "x");
    file.write("new", 3);
    std::filesystem::create_directory(dir / "x");  // by another process, meanwhile
    EXPECT_CONTAINS(message_of([&] { file.commit(); }), "cannot be put in place: Is a directory");
  }
  EXPECT_EQ(dir.entries(), 1u);  // the folder
}

TEST(AtomicFile, WorksInTheCurrentFolderAndWithLongNames) {
  const TempDir dir;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  save_safetensors("x", filled(1, 1));
  std::filesystem::current_path(before);
  EXPECT_EQ(load_safetensors(dir / "x").tensors.size(), 3u);
  const auto longest = dir / std::string(255, 'n');
  save_safetensors(longest, filled(1, 1));
  EXPECT_EQ(load_safetensors(longest).tensors.size(), 3u);
}

TEST(AtomicFile, RefusesWhatItWouldDestroyOrCannotReach) {
  const TempDir dir;
  const auto message = [&](const std::string& path) {
    const auto text = refusal([&] { save_safetensors(path, filled(1, 1)); });
    EXPECT_CONTAINS(text, "[save_safetensors] " + path + ": ");
    return text;
  };
  EXPECT_CONTAINS(message(dir.path().string()), "not a regular file");
  // A FIFO stands in for a device: with a broken check, a test run as root would replace a real one
  // in /dev.
  ASSERT_EQ(mkfifo((dir / "fifo").c_str(), 0600), 0);
  EXPECT_CONTAINS(message(dir / "fifo"), "not a regular file");
  EXPECT_TRUE(std::filesystem::is_fifo(dir / "fifo"));
  EXPECT_CONTAINS(message(dir / "none/x"), "No such file or directory");
  EXPECT_CONTAINS(message(dir / std::string(300, 'n')), "File name too long");
  EXPECT_EQ(dir.entries(), 1u);  // the FIFO
}

}  // namespace
}  // namespace posenc::testing
