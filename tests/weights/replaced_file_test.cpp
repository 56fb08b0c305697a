// Replacing a file by a save: through links, with its mode and owner, and the files that are not
// replaced.
#include <ATen/ATen.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>

#include "posenc/weights/safetensors.h"
#include "weights/child.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;

void save(const std::string& path) {
  StateDict tensors;
  tensors.insert("a", at::ones({3}));
  save_safetensors(path, tensors);
}

bool is_saved(const std::string& path) { return load_safetensors(path).tensors.size() == 1; }

struct stat status_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status;
}

unsigned mode_of(const std::string& path) { return status_of(path).st_mode & 07777; }

TEST(ReplacedFile, KeepsItsMode) {
  const TempDir dir;
  write_bytes(dir / "x", "old");
  chmod((dir / "x").c_str(), 0640);
  save(dir / "x");
  EXPECT_EQ(mode_of(dir / "x"), 0640u);
}

TEST(ReplacedFile, ANewOneHasTheUsualMode) {
  const TempDir dir;
  const mode_t mask = umask(027);
  save(dir / "x");
  umask(mask);
  EXPECT_EQ(mode_of(dir / "x"), 0640u);
}

// Set-user-ID bits do not belong on data; writing in place clears them as well.
TEST(ReplacedFile, LosesItsSetuidBit) {
  const TempDir dir;
  write_bytes(dir / "x", "old");
  ASSERT_EQ(chmod((dir / "x").c_str(), 06755), 0);
  save(dir / "x");
  EXPECT_EQ(mode_of(dir / "x"), 0755u);
}

TEST(ReplacedFile, KeepsItsOwnerWhereThatIsAllowed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may give files to others";
  const TempDir dir;
  write_bytes(dir / "x", "old");
  ASSERT_EQ(chown((dir / "x").c_str(), kNobody, kNobody), 0);
  ASSERT_EQ(chmod((dir / "x").c_str(), 0640), 0);
  save(dir / "x");
  const auto status = status_of(dir / "x");
  EXPECT_EQ(status.st_uid, kNobody);
  EXPECT_EQ(status.st_gid, kNobody);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
}

// If the group cannot be kept, its permissions are dropped: another group must not gain access.
TEST(ReplacedFile, GivesNoOtherGroupWhatOneHad) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may act as another user";
  const TempDir dir;
  ASSERT_EQ(chmod(dir.path().c_str(), 0777), 0);
  write_bytes(dir / "x", "old");
  ASSERT_EQ(chown((dir / "x").c_str(), kNobody, 0), 0);
  ASSERT_EQ(chmod((dir / "x").c_str(), 0664), 0);
  EXPECT_EQ(in_child([&] {
              if (setgid(kNobody) != 0 || setuid(kNobody) != 0) return 1;
              save(dir / "x");
              return 0;
            }),
            0);
  EXPECT_EQ(status_of(dir / "x").st_gid, kNobody);
  EXPECT_EQ(mode_of(dir / "x"), 0644u);
}

// As with open(): a write-protected file must not be replaced.
TEST(ReplacedFile, MayBeWrittenTo) {
  const TempDir dir;
  ASSERT_EQ(chmod(dir.path().c_str(), 0777), 0);
  write_bytes(dir / "x", "old");
  ASSERT_EQ(chmod((dir / "x").c_str(), 0444), 0);
  const auto text = [&] { return refusal([&] { save(dir / "x"); }); };
  const int status = in_child([&] {
    if (geteuid() == 0 && setuid(kNobody) != 0) return 1;
    const std::string said = text();
    const bool right = said.find(
                           "exists and may not be written to: Permission denied; make it "
                           "writable") != std::string::npos;
    if (!right) std::cerr << said << std::endl;
    return right ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_bytes(dir / "x"), "old");
  EXPECT_EQ(mode_of(dir / "x"), 0444u);
  EXPECT_EQ(dir.entries(), 1u);
}

TEST(ReplacedFile, IsTheTargetOfASymbolicLink) {
  const TempDir dir;
  fs::create_directory(dir / "real");
  write_bytes(dir / "real/x", "old");
  fs::create_symlink("real/x", dir / "link");
  fs::create_symlink(dir / "link", dir / "second");
  save(dir / "second");
  EXPECT_TRUE(fs::is_symlink(dir / "link"));
  EXPECT_TRUE(fs::is_symlink(dir / "second"));
  EXPECT_TRUE(is_saved(dir / "real/x"));
}

TEST(ReplacedFile, IsCreatedAtADanglingLinksTarget) {
  const TempDir dir;
  fs::create_directory(dir / "real");
  fs::create_symlink("real/new", dir / "link");
  fs::create_symlink("link", dir / "second");
  save(dir / "second");
  EXPECT_TRUE(fs::is_symlink(dir / "link"));
  EXPECT_TRUE(fs::is_symlink(dir / "second"));
  EXPECT_FALSE(fs::is_symlink(dir / "real/new"));
  EXPECT_TRUE(is_saved(dir / "real/new"));

  fs::create_symlink("none/new", dir / "astray");
  EXPECT_CONTAINS(refusal([&] { save(dir / "astray"); }), "No such file or directory");
  EXPECT_TRUE(fs::is_symlink(dir / "astray"));
}

TEST(ReplacedFile, RejectsACycleOfLinks) {
  const TempDir dir;
  fs::create_symlink("b", dir / "a");
  fs::create_symlink("a", dir / "b");
  EXPECT_CONTAINS(refusal([&] { save(dir / "a"); }),
                  (dir / "a") + ": cannot be written: Too many levels of symbolic links");
  EXPECT_TRUE(fs::is_symlink(dir / "a"));
  EXPECT_EQ(dir.entries(), 2u);
}

// For example, a single file in a container's volume: renaming over it fails, and writing in place
// is not atomic.
TEST(ReplacedFile, RejectsAMountPoint) {
  const TempDir dir;
  write_bytes(dir / "outside", "old");
  write_bytes(dir / "x", "below the mount");
  constexpr int kNoMounts = 77;
  const int status = in_child([&] {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount((dir / "outside").c_str(), (dir / "x").c_str(), nullptr, MS_BIND, nullptr) != 0) {
      std::cerr << "no mounts here: " << std::strerror(errno) << std::endl;
      return kNoMounts;
    }
    const std::string said = refusal([&] { save(dir / "x"); });
    const bool right =
        said.find("Io: ") == 0 && said.find(
                                      "Device or resource busy; it is mounted as a single "
                                      "file") != std::string::npos;
    if (!right) std::cerr << said << std::endl;
    return right && read_bytes(dir / "x") == "old" ? 0 : 1;
  });
  if (status == kNoMounts) GTEST_SKIP() << "this process may not mount a file";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_bytes(dir / "outside"), "old");
  EXPECT_EQ(dir.entries(), 2u);
}

}  // namespace
}  // namespace posenc::testing
