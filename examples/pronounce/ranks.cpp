#include "ranks.h"

#include "messages.h"

#ifdef PRONOUNCE_WITH_GLOO
#include <posenc/train/gloo.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <vector>
#endif

namespace pronounce {

#ifdef PRONOUNCE_WITH_GLOO
namespace {

// How the processes that start_ranks() starts find each other.
constexpr const char* kStore = "PRONOUNCE_STORE";
constexpr const char* kRank = "PRONOUNCE_RANK";
constexpr const char* kRanks = "PRONOUNCE_RANKS";

// The processes that were started; the signal handler reads them.
std::vector<pid_t> children;

void pass_on(int number) {
  for (const pid_t child : children) ::kill(child, number);
}

// A new folder, removed with everything in it.
class StoreFolder {
 public:
  StoreFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "pronounce-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail("{}: no folder can be made", name);
    path_ = name;
  }
  ~StoreFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  StoreFolder(const StoreFolder&) = delete;
  StoreFolder& operator=(const StoreFolder&) = delete;
  std::string store() const { return path_ + "/store"; }

 private:
  std::string path_;
};

pid_t start(int64_t rank, char** argv, pid_t parent) {
  ::setenv(kRank, std::to_string(rank).c_str(), 1);
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setpgid(0, 0);  // a terminal's Ctrl-C reaches the parent alone, which passes it on once
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() == parent) ::execv("/proc/self/exe", argv);
  ::_exit(127);
}

int status_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

posenc::RankGroup join_ranks() {
  const char* store = std::getenv(kStore);
  if (store == nullptr) return posenc::group_from_environment();
  const int rank = std::stoi(std::getenv(kRank)), ranks = std::stoi(std::getenv(kRanks));
  return posenc::gloo_group(c10::make_intrusive<c10d::FileStore>(store, ranks), rank, ranks);
}

bool starts_ranks(int64_t ranks) { return ranks > 1 && std::getenv(kStore) == nullptr; }

int start_ranks(int64_t ranks, char** argv) {
  const StoreFolder folder;
  const int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  ::setenv("OMP_NUM_THREADS", std::to_string(std::max<int64_t>(1, cores / ranks)).c_str(), 0);
  ::setenv(kStore, folder.store().c_str(), 1);
  ::setenv(kRanks, std::to_string(ranks).c_str(), 1);
  children.reserve(static_cast<std::size_t>(ranks));  // the handler reads it at any time
  std::signal(SIGINT, pass_on);
  std::signal(SIGTERM, pass_on);
  const pid_t parent = ::getpid();
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const pid_t child = start(rank, argv, parent);
    if (child < 0) {
      pass_on(SIGTERM);
      fail("process {} of {} cannot be started", rank, ranks);
    }
    children.push_back(child);
  }
  int first = 0;
  for (const pid_t child : children) {
    const int status = status_of(child);
    if (first == 0) first = status;
  }
  return first;
}

#else

posenc::RankGroup join_ranks() { return {}; }

bool starts_ranks(int64_t ranks) { return ranks > 1; }

int start_ranks(int64_t, char**) {
  fail(
      "--ranks needs posenc::gloo, which this posenc was built without: install Gloo's headers "
      "(Debian: libgloo-dev) and build it again");
}

#endif

}  // namespace pronounce
