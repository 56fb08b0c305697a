#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>

#include "base/platform/network.h"
#include "posenc/train/gloo.h"
#include "train/gloo/meet.h"
#include "train/parallel/group_text.h"

// LibTorch's Gloo may be newer than the headers that are installed. Nothing here may use a class
// whose layout or virtual functions differ: above all not ProcessGroupGloo::GlooStore, whose table
// of virtual functions a program would then share with LibTorch. A test looks for it in the object.

namespace posenc {
namespace {

using c10d::ProcessGroupGloo;

constexpr const char* kFromEnvironment = "group_from_environment";

[[noreturn]] void throw_rendezvous(const char* caller, int rank, int size,
                                   const std::exception& error) {
  throw GroupError(
      GroupErrorCode::Rendezvous, rank,
      c10::str(parallel::rank_prefix(caller, rank, size),
               "the processes did not find each other within the group's time-out; start all of "
               "them, with the same address and port. Got: ",
               parallel::text_of(error)));
}

void check(const GroupOptions& options, const char* caller) {
  // More would overflow in the engine.
  constexpr std::chrono::milliseconds kMost = std::chrono::hours(24 * 30);
  TORCH_CHECK_VALUE(options.timeout().count() > 0 && options.timeout() <= kMost, "[", caller,
                    "] timeout must be positive and at most 30 days. Got ",
                    options.timeout().count(), " ms");
}

auto make_device(const std::string& address, const char* caller) {
  try {
    return platform::is_network_interface(address)
               ? ProcessGroupGloo::createDeviceForInterface(address)
               : ProcessGroupGloo::createDeviceForHostname(address);
  } catch (const std::exception& error) {
    TORCH_CHECK_VALUE(false, "[", caller,
                      "] address must be an address of this host or the name of one of its network "
                      "interfaces. Got `",
                      address, "`");
  }
}

using GlooOptions = c10::intrusive_ptr<ProcessGroupGloo::Options>;

/// Options with the devices of a list of addresses, over which PyTorch spreads the messages.
GlooOptions gloo_options(const std::string& address, const char* caller) {
  GlooOptions gloo = ProcessGroupGloo::Options::create();
  std::istringstream addresses(address);
  for (std::string each; std::getline(addresses, each, ',');) {
    if (!each.empty()) gloo->devices.push_back(make_device(each, caller));
  }
  TORCH_CHECK_VALUE(!gloo->devices.empty(), "[", caller,
                    "] address must name at least one network interface. Got `", address, "`");
  return gloo;
}

RankGroup connect(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                  const GlooOptions& gloo, const GroupOptions& options,
                  const gloo::Deadline& deadline, const char* caller) {
  platform::ignore_broken_pipes();  // Python ignores them, so PyTorch does nothing about them
  gloo->timeout = deadline.left();
  try {
    const c10d::StoreTimeoutGuard guard(*store, gloo->timeout);
    auto group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, size);
    c10::intrusive_ptr<c10d::Backend> backend =
        c10::make_intrusive<ProcessGroupGloo>(store, rank, size, gloo);
    backend->setTimeout(options.timeout());  // of a collective, from now on
    group->setBackend(c10::kCPU, c10d::ProcessGroup::GLOO, backend);
    group->setDefaultBackend(c10d::ProcessGroup::GLOO);
    return group;
  } catch (const std::exception& error) {
    throw_rendezvous(caller, rank, size, error);
  }
}

/// The address of this host for its peers: PyTorch's own variable, or where the route to them
/// begins.
std::string own_address(const gloo::Launch& launch) {
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface && *interface) return interface;
  return platform::local_address(launch.address, launch.port);
}

}  // namespace

RankGroup gloo_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                     const GroupOptions& options) {
  TORCH_CHECK_VALUE(store, "[gloo_group] a store is required");
  TORCH_CHECK_VALUE(rank >= 0 && rank < size, "[gloo_group] rank must lie in [0, ", size, "). Got ",
                    rank);
  check(options, "gloo_group");
  const std::string address = options.address().empty() ? "127.0.0.1" : options.address();
  return connect(store, rank, size, gloo_options(address, "gloo_group"), options,
                 gloo::Deadline(options.timeout()), "gloo_group");
}

RankGroup group_from_environment(const GroupOptions& options) {
  check(options, kFromEnvironment);
  const std::optional<gloo::Launch> launch = gloo::launch_from_environment();
  if (!launch || launch->size == 1) return {};
  return gloo::meet(*launch, options, gloo::Deadline(options.timeout()));
}

RankGroup gloo::meet(const Launch& launch, const GroupOptions& options, const Deadline& deadline) {
  const std::string address = options.address().empty() ? own_address(launch) : options.address();
  TORCH_CHECK_VALUE(!address.empty(), "[", kFromEnvironment,
                    "] MASTER_ADDR must be the name or address of a host that this one reaches. "
                    "Got `",
                    launch.address, "`");
  const GlooOptions gloo = gloo_options(address, kFromEnvironment);
  c10d::TCPStoreOptions tcp;
  tcp.port = launch.port;
  tcp.isServer = !launch.agent_serves && launch.rank == 0;
  tcp.waitWorkers = false;  // the group itself waits for everybody
  tcp.multiTenant = true;
  tcp.timeout = deadline.left();
  c10::intrusive_ptr<c10d::Store> store;
  try {
    store = c10::make_intrusive<c10d::TCPStore>(launch.address, tcp);
  } catch (const std::exception& error) {
    throw_rendezvous(kFromEnvironment, launch.rank, launch.size, error);
  }
  // After a restart, the agent's store still holds the addresses of those that died.
  // So does any store those of this program's first group, if this is a second one.
  static std::atomic<int64_t> groups{0};
  store = c10::make_intrusive<c10d::PrefixStore>(
      c10::str("posenc/attempt_", launch.attempt, "/of_", launch.size, "/group_", groups++), store);
  return connect(store, launch.rank, launch.size, gloo, options, deadline, kFromEnvironment);
}

}  // namespace posenc
