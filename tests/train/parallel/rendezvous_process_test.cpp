// Processes that meet by what a launcher leaves in the environment. Run by RankProcesses, whose own
// group says only which rank a process is.
#include <ATen/ops/ones.h>
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "posenc/train/gloo.h"
#include "support/rank_processes.h"
#include "train/parallel/collectives.h"

namespace posenc::rendezvous_process_test {
namespace {

using testing::RankEnd;
using testing::RankProcesses;

constexpr std::chrono::seconds kMeeting(200);  // of the processes of a test

/// The group under the names of the launcher in NAMES ("RANK,WORLD_SIZE").
RankGroup group_under_names(const RankGroup& given, std::chrono::milliseconds timeout) {
  const std::string names = std::getenv("NAMES");
  const size_t comma = names.find(',');
  setenv(names.substr(0, comma).c_str(), std::to_string(given.rank()).c_str(), 1);
  setenv(names.substr(comma + 1).c_str(), std::getenv("SIZE"), 1);
  return group_from_environment(GroupOptions().timeout(timeout));
}

std::chrono::milliseconds given_timeout() {
  return std::chrono::milliseconds(std::atoi(std::getenv("TIMEOUT")));
}

/// Meets the others and sums.
void meet(const RankGroup& given) {
  // Late, so that the other rank would read an address of an earlier attempt if there were one.
  if (given.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const RankGroup group = group_under_names(given, given_timeout());
  const at::Tensor sum = at::ones({5});
  parallel::all_reduce(group, sum, "meet");
  TORCH_CHECK(group.rank() == given.rank() && group.size() == given.size() &&
              sum.equal(at::ones({5}) * given.size()));
  parallel::barrier(group, "meet");
}
const bool kMeet = testing::register_rank_work("meet", meet);

/// A port that nobody else is given while this exists; a server may still listen there.
class ReservedPort {
 public:
  ReservedPort() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    const int on = 1;
    setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    if (bind(socket_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      throw std::runtime_error("no free port");
    }
    port_ = ntohs(address.sin_port);
  }
  ~ReservedPort() { close(socket_); }
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;
  operator int() const { return port_; }

 private:
  int socket_;
  int port_ = 0;
};

std::map<std::string, std::string> variables(const std::string& names, int size, int port) {
  return {{"NAMES", names},
          {"SIZE", std::to_string(size)},
          {"TIMEOUT", "200000"},
          {"MASTER_ADDR", "localhost"},
          {"MASTER_PORT", std::to_string(port)}};
}

void expect_met(RankProcesses& ranks, int size) {
  for (int rank = 0; rank < size; ++rank) {
    const RankEnd end = ranks.wait(rank);
    EXPECT_EQ(end.exit_code, 0) << "rank " << rank << ": " << end.error;
  }
}

TEST(RendezvousProcess, UnderEveryLaunchersNames) {
  for (const char* names : {"RANK,WORLD_SIZE", "SLURM_PROCID,SLURM_NTASKS",
                            "OMPI_COMM_WORLD_RANK,OMPI_COMM_WORLD_SIZE", "PMI_RANK,PMI_SIZE"}) {
    const ReservedPort port;
    RankProcesses ranks(2, "meet", kMeeting, variables(names, 2, port));
    expect_met(ranks, 2);
  }
}

TEST(RendezvousProcess, ByInterfaces) {
  for (const char* interfaces : {"lo", "lo,lo", ",lo,,lo,"}) {
    const ReservedPort port;
    auto environment = variables("RANK,WORLD_SIZE", 3, port);
    environment["GLOO_SOCKET_IFNAME"] = interfaces;
    RankProcesses ranks(3, "meet", kMeeting, environment);
    expect_met(ranks, 3);
  }
}

TEST(RendezvousProcess, AListWithoutAnInterfaceIsRefused) {
  const ReservedPort port;
  auto environment = variables("RANK,WORLD_SIZE", 2, port);
  environment["GLOO_SOCKET_IFNAME"] = ",";
  RankProcesses ranks(2, "meet", kMeeting, environment);
  for (int rank = 0; rank < 2; ++rank) {
    const RankEnd end = ranks.wait(rank);
    EXPECT_EQ(end.exit_code, 1);
    EXPECT_PRED_FORMAT2(::testing::IsSubstring,
                        "[group_from_environment] address must name at least one network "
                        "interface. Got `,`",
                        end.error);
  }
}

// As after torchrun's restarts: one store of the agent's for all attempts, in which the addresses
// of those that died are still to be read.
TEST(RendezvousProcess, AnAgentsStoreServesEveryAttempt) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  const c10d::TCPStore agent("127.0.0.1", options);
  auto environment = variables("RANK,WORLD_SIZE", 2, agent.getPort());
  environment["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  for (const char* attempt : {"0", "1", "2"}) {
    environment["TORCHELASTIC_RESTART_COUNT"] = attempt;
    RankProcesses ranks(2, "meet", kMeeting, environment);
    expect_met(ranks, 2);
  }
}

TEST(RendezvousProcess, WhoeverWaitsInVainGetsAnError) {
  for (const bool agent : {false, true}) {  // nobody serves at the port of an agent that is gone
    const ReservedPort port;
    auto environment = variables("RANK,WORLD_SIZE", 3, port);
    environment["TIMEOUT"] = "2000";
    environment["TORCHELASTIC_USE_AGENT_STORE"] = agent ? "True" : "False";
    RankProcesses ranks(2, "meet", kMeeting, environment);  // rank 2 never comes
    for (int rank = 0; rank < 2; ++rank) {
      const RankEnd end = ranks.wait(rank);
      EXPECT_EQ(end.exit_code, 1);
      const std::string begin = "Rendezvous [group_from_environment] rank " + std::to_string(rank) +
                                " of 3: the processes did not find each other";
      EXPECT_EQ(end.error.rfind(begin, 0), 0u) << end.error;
    }
  }
}

TEST(RendezvousProcess, APortInUseIsAnErrorOfRankZero) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  auto environment = variables("RANK,WORLD_SIZE", 2, ntohs(address.sin_port));
  environment["TIMEOUT"] = "2000";
  RankProcesses ranks(2, "meet", kMeeting, environment);
  // Rank 1 waits for an answer from whoever listens there, which LibTorch's client does without a
  // limit; a launcher ends it.
  const RankEnd end = ranks.wait(0);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_EQ(end.error.rfind("Rendezvous [group_from_environment] rank 0 of 2", 0), 0u) << end.error;
  close(fd);
}

/// Under torchrun: on the first attempt rank 1 is killed, on the second all sum and finish.
TEST(LauncherProcess, DISABLED_Work) {
  alarm(600);
  const RankGroup group = group_from_environment();
  const char* attempt = std::getenv("TORCHELASTIC_RESTART_COUNT");
  const char* kill_on = std::getenv("POSENC_KILL_ON_ATTEMPT");
  const at::Tensor sum = at::ones({1});
  parallel::all_reduce(group, sum, "work");
  if (attempt && kill_on && std::string(attempt) == kill_on && group.rank() == 1) raise(SIGKILL);
  parallel::all_reduce(group, sum, "work");
  ASSERT_EQ(sum.item<float>(), static_cast<float>(group.size() * group.size()));
  std::printf("rank %d of %d has the sum, attempt %s\n", group.rank(), group.size(), attempt);
  parallel::barrier(group, "work");
}

}  // namespace
}  // namespace posenc::rendezvous_process_test
