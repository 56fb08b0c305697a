#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "posenc/train/group.h"
#include "support/temp_dir.h"

namespace posenc::testing {

/// The function that a process of a RankProcesses runs. All ranks share a working folder.
using RankWork = std::function<void(const RankGroup& group)>;

/// Registers work under a name, before main(): `const bool kTrain = register_rank_work("train",
/// train);`
bool register_rank_work(const std::string& name, RankWork work);

/// How a process ended.
struct RankEnd {
  int exit_code =
      -1;  ///< 0 if the work returned, 1 if it threw; -1 if a signal ended it, or if there was none
  int signal = 0;     ///< the signal that ended it
  std::string error;  ///< what the work threw: "PeerLost [caller] ...", or "std::exception ..."
};

/// Processes of a test, each this test program started again to run one rank's work with a Gloo
/// group of `timeout` over a FileStore in a folder of their own. They end after ten minutes
/// (SIGALRM);
/// the destructor kills those that still run.
class RankProcesses {
 public:
  /// Starts `start` of `size` ranks, all of them unless it is given.
  RankProcesses(int size, const std::string& work,
                std::chrono::milliseconds timeout = std::chrono::seconds(200),
                const std::map<std::string, std::string>& environment = {}, int start = -1);
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  /// Waits until the work of `rank` has called announce(event).
  void await(int rank, const std::string& event) const;
  void send_signal(int rank, int signal) const;
  /// How `rank` ended; waits for it.
  RankEnd wait(int rank);
  const testing::TempDir& folder() const { return folder_; }

 private:
  testing::TempDir folder_;
  std::vector<pid_t> pids_;
};

/// Called by a rank's work.
void announce(const RankGroup& group, const std::string& event);

}  // namespace posenc::testing
