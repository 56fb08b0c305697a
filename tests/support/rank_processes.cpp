#include "support/rank_processes.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "posenc/train/gloo.h"

extern char** environ;

namespace posenc::testing {
namespace {

constexpr const char* kFolder = "POSENC_RANKS_FOLDER";
constexpr const char* kRank = "POSENC_RANKS_RANK";
constexpr const char* kSize = "POSENC_RANKS_SIZE";
constexpr const char* kTimeout = "POSENC_RANKS_TIMEOUT";
constexpr const char* kWork = "POSENC_RANKS_WORK";
constexpr const char* kDone = "done";  // the event of work that returns

std::map<std::string, RankWork>& registered_work() {
  static std::map<std::string, RankWork> work;
  return work;
}

std::string event_file(int rank, const std::string& event) {
  return "rank_" + std::to_string(rank) + "." + event;
}

std::string code_name(GroupErrorCode code) {
  switch (code) {
    case GroupErrorCode::PeerLost: return "PeerLost";
    case GroupErrorCode::TimedOut: return "TimedOut";
    case GroupErrorCode::Disagree: return "Disagree";
    case GroupErrorCode::PeerFailed: return "PeerFailed";
    case GroupErrorCode::Rendezvous: return "Rendezvous";
  }
  return "?";
}

/// Whether a started process must not inherit this variable ("NAME=value"): the tests may
/// themselves be run by a launcher, or as one of several shards, of which most would not run
/// DISABLED_Work.
bool is_of_this_process(const std::string& variable) {
  for (const char* start : {"RANK=", "WORLD_SIZE=", "LOCAL_", "MASTER_", "GLOO_", "TORCHELASTIC_",
                            "SLURM_", "OMPI_", "PMI_", "PMIX_", "GTEST_"}) {
    if (variable.rfind(start, 0) == 0) return true;
  }
  return false;
}

void run_work(int rank) {
  const auto size = std::atoi(std::getenv(kSize));
  const auto timeout = std::chrono::milliseconds(std::atoi(std::getenv(kTimeout)));
  const RankGroup group = gloo_group(c10::make_intrusive<c10d::FileStore>("store", size), rank,
                                     size, GroupOptions().timeout(timeout));
  group.barrier();  // one that ended its work now would be lost to those that still connect
  registered_work().at(std::getenv(kWork))(group);
}

/// The test that a started process runs; in other processes it is skipped as disabled.
TEST(RankProcess, DISABLED_Work) {
  const char* folder = std::getenv(kFolder);
  if (!folder) GTEST_SKIP() << "run by RankProcesses";
  alarm(600);
  ASSERT_EQ(chdir(folder), 0);
  at::set_num_threads(1);
  const int rank = std::atoi(std::getenv(kRank));
  std::string error;
  try {
    run_work(rank);
  } catch (const GroupError& e) {
    error = code_name(e.code()) + " " + e.what();
  } catch (const std::exception& e) {
    error = std::string("std::exception ") + e.what();
  }
  if (error.empty()) {
    std::ofstream(event_file(rank, kDone)).flush();
    return;
  }
  std::ofstream(event_file(rank, "error")) << error;
  GTEST_FAIL() << error;
}

}  // namespace

bool register_rank_work(const std::string& name, RankWork work) {
  return registered_work().emplace(name, std::move(work)).second;
}

RankProcesses::RankProcesses(int size, const std::string& work, std::chrono::milliseconds timeout,
                             const std::map<std::string, std::string>& environment, int start)
    : pids_(static_cast<size_t>(start < 0 ? size : start)) {
  for (size_t rank = 0; rank < pids_.size(); ++rank) {
    std::vector<std::string> variables{
        std::string(kFolder) + "=" + folder_.path().string(),
        std::string(kRank) + "=" + std::to_string(rank),
        std::string(kSize) + "=" + std::to_string(size),
        std::string(kTimeout) + "=" + std::to_string(timeout.count()),
        std::string(kWork) + "=" + work};
    for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
    for (char** inherited = environ; *inherited; ++inherited)
      if (!is_of_this_process(*inherited)) variables.emplace_back(*inherited);
    std::vector<char*> pointers;
    for (std::string& variable : variables) pointers.push_back(variable.data());
    pointers.push_back(nullptr);
    std::string program = "/proc/self/exe";
    std::string filter = "--gtest_filter=RankProcess.DISABLED_Work";
    std::string disabled = "--gtest_also_run_disabled_tests";
    char* arguments[] = {program.data(), filter.data(), disabled.data(), nullptr};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    const std::string log = folder_ / event_file(static_cast<int>(rank), "log");
    posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    const int failed =
        posix_spawn(&pids_[rank], program.c_str(), &files, nullptr, arguments, pointers.data());
    posix_spawn_file_actions_destroy(&files);
    if (failed) throw std::runtime_error("no process could be started");
  }
}

RankProcesses::~RankProcesses() {
  for (const pid_t pid : pids_) {
    if (pid == 0) continue;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

void RankProcesses::await(int rank, const std::string& event) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(10);
  while (!std::filesystem::exists(folder_ / event_file(rank, event))) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("no event " + event);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void RankProcesses::send_signal(int rank, int signal) const {
  kill(pids_.at(static_cast<size_t>(rank)), signal);
}

RankEnd RankProcesses::wait(int rank) {
  int status = 0;
  waitpid(pids_.at(static_cast<size_t>(rank)), &status, 0);
  pids_[static_cast<size_t>(rank)] = 0;
  RankEnd end;
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  std::ifstream file(folder_ / event_file(rank, "error"));
  end.error.assign(std::istreambuf_iterator<char>(file), {});
  if (end.signal == 0 && end.exit_code == 0 &&
      !std::filesystem::exists(folder_ / event_file(rank, kDone))) {
    end.exit_code = -1;  // a program that runs no test exits with 0 as well
    end.error = "the process ended without its work";
  }
  return end;
}

void announce(const RankGroup& group, const std::string& event) {
  std::ofstream(event_file(group.rank(), event)).flush();
}

}  // namespace posenc::testing
