// What launchers leave in the environment, and what people leave there.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/platform/network.h"
#include "posenc/train/gloo.h"
#include "support/compare.h"
#include "train/gloo/launch.h"

namespace posenc {
namespace {

using gloo::launch_from_environment;
using Variables = std::map<std::string, std::string>;

/// The environment with only these of the launchers' variables, until the destructor.
class Environment {
 public:
  explicit Environment(const Variables& variables) {
    for (const char* name : kNames) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      unsetenv(name);
    }
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const char* name : kNames) unsetenv(name);
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  static constexpr const char* kNames[] = {"RANK",
                                           "WORLD_SIZE",
                                           "MASTER_ADDR",
                                           "MASTER_PORT",
                                           "SLURM_PROCID",
                                           "SLURM_NTASKS",
                                           "OMPI_COMM_WORLD_RANK",
                                           "OMPI_COMM_WORLD_SIZE",
                                           "PMI_RANK",
                                           "PMI_SIZE",
                                           "TORCHELASTIC_USE_AGENT_STORE",
                                           "TORCHELASTIC_RESTART_COUNT",
                                           "GLOO_SOCKET_IFNAME"};
  Variables before_;
};

const Variables kByHand{
    {"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "29500"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

TEST(Launch, NoLauncherIsASingleProcess) {
  const Environment environment({});
  EXPECT_FALSE(launch_from_environment());
  EXPECT_FALSE(group_from_environment());
}

TEST(Launch, EveryLauncherIsUnderstood) {
  const std::pair<const char*, const char*> names[] = {
      {"RANK", "WORLD_SIZE"},
      {"SLURM_PROCID", "SLURM_NTASKS"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"}};
  for (const auto& [rank, size] : names) {
    const Environment environment(
        {{rank, "3"}, {size, "8"}, {"MASTER_ADDR", "node-0"}, {"MASTER_PORT", "1234"}});
    const auto launch = launch_from_environment();
    ASSERT_TRUE(launch) << rank;
    EXPECT_EQ(launch->rank, 3);
    EXPECT_EQ(launch->size, 8);
    EXPECT_EQ(launch->address, "node-0");
    EXPECT_EQ(launch->port, 1234);
    EXPECT_FALSE(launch->agent_serves);
    EXPECT_EQ(launch->attempt, "0");
  }
}

TEST(Launch, TorchrunsAgentServesTheStore) {
  const Environment environment(with(
      kByHand, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TORCHELASTIC_RESTART_COUNT", "2"}}));
  EXPECT_TRUE(launch_from_environment()->agent_serves);
  EXPECT_EQ(launch_from_environment()->attempt, "2");
  setenv("TORCHELASTIC_USE_AGENT_STORE", "False", 1);
  EXPECT_FALSE(launch_from_environment()->agent_serves);
}

TEST(Launch, TheNearestLauncherCounts) {
  // torchrun started by srun, and mpirun inside an allocation whose script is task 0 of 1.
  const Environment torchrun(with(kByHand, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}));
  EXPECT_EQ(launch_from_environment()->rank, 2);
  const Environment mpirun({{"SLURM_PROCID", "0"},
                            {"SLURM_NTASKS", "1"},
                            {"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "h"},
                            {"MASTER_PORT", "1"}});
  EXPECT_EQ(launch_from_environment()->size, 2);
}

TEST(Launch, ASizeOfOneNeedsNoAddress) {
  const Environment environment({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}});
  EXPECT_EQ(launch_from_environment()->size, 1);
  EXPECT_FALSE(group_from_environment());
}

TEST(Launch, SlurmsAllocationAloneLaunchesNothing) {
  const Environment environment(Variables{{"SLURM_NTASKS", "4"}});
  EXPECT_FALSE(launch_from_environment());
}

TEST(Launch, MissingVariablesAreNamed) {
  for (const char* name : {"WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    const std::string message =
        "[group_from_environment] " + std::string(name) + " must be set, since RANK is";
    {
      const Environment environment(without(kByHand, name));
      EXPECT_ERROR(launch_from_environment(), c10::ValueError, message);
    }
    const Environment empty(with(kByHand, {{name, ""}}));  // set, but to nothing
    EXPECT_ERROR(launch_from_environment(), c10::ValueError, message);
  }
  {
    const Environment environment(without(kByHand, "RANK"));
    EXPECT_ERROR(group_from_environment(), c10::ValueError,
                 "[group_from_environment] RANK must be set, since WORLD_SIZE is");
  }
  {
    const Environment environment(Variables{{"MASTER_ADDR", "h"}});
    EXPECT_ERROR(group_from_environment(), c10::ValueError, "RANK must be set, since MASTER_ADDR");
  }
  const Environment environment({{"PMI_RANK", "0"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}});
  EXPECT_ERROR(launch_from_environment(), c10::ValueError, "PMI_SIZE must be set, since PMI_RANK");
}

TEST(Launch, ABatchScriptWithoutSrunIsToldSo) {
  const Environment environment({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}});
  EXPECT_ERROR(launch_from_environment(), c10::ValueError,
               "MASTER_ADDR must be set, since SLURM_PROCID is; in a batch script, start the "
               "program with srun, or unset SLURM_PROCID for a single process");
}

TEST(Launch, SenselessValuesAreRefused) {
  const auto expect = [](const char* name, const char* value, const char* range) {
    const Environment environment(with(kByHand, {{name, value}}));
    EXPECT_ERROR(launch_from_environment(), c10::ValueError,
                 "[group_from_environment] " + std::string(name) + " must be an integer from " +
                     range + ". Got `" + value + "`");
  };
  for (const char* rank : {"4", "-1", "two", "1.5", " 1", "1 ", "0x1", "99999999999999999999"}) {
    expect("RANK", rank, "0 to 3");
  }
  for (const char* size : {"0", "-4", "four", "4294967296", "4,"}) {
    expect("WORLD_SIZE", size, "1 to 2147483647");
  }
  for (const char* port : {"0", "65536", "-1", "http"}) expect("MASTER_PORT", port, "1 to 65535");
}

TEST(Launch, TheOwnAddressIsWhereTheRouteBegins) {
  EXPECT_EQ(platform::local_address("127.0.0.1", 29500), "127.0.0.1");
  EXPECT_EQ(platform::local_address("localhost", 29500), "127.0.0.1");
  EXPECT_EQ(platform::local_address("no.such.host.invalid", 29500), "");
  const Environment environment(with(kByHand, {{"MASTER_ADDR", "no.such.host.invalid"}}));
  EXPECT_ERROR(group_from_environment(), c10::ValueError,
               "[group_from_environment] MASTER_ADDR must be the name or address of a host that "
               "this one reaches. Got `no.such.host.invalid`");
}

TEST(Launch, OptionsAreCheckedFirst) {
  const Environment environment({});
  EXPECT_ERROR(group_from_environment(GroupOptions().timeout(std::chrono::milliseconds(-1))),
               c10::ValueError,
               "[group_from_environment] timeout must be positive and at most 30 days. Got -1 ms");
}

}  // namespace
}  // namespace posenc
