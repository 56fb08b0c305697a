#pragma once

#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "posenc/export.h"

namespace c10d {
class ProcessGroup;
}

namespace posenc POSENC_EXPORT {

/// What went wrong between the processes of a group.
enum class GroupErrorCode {
  PeerLost,    ///< another process ended, was killed or closed its connection
  TimedOut,    ///< another process did not take part within the group's time-out
  Disagree,    ///< the processes hold different models, options, dtypes or versions of posenc
  PeerFailed,  ///< another process reported an error of its own; this one's call was right
  Rendezvous,  ///< the processes did not find each other
};

/// An error between processes. Its message names the function, the rank and what to do.
/// After PeerLost and TimedOut the group is unusable: drop it and end the process, or make a new
/// group. The engine's own exceptions are always converted to this type.
class GroupError : public std::runtime_error {
 public:
  /// An error of `rank` with this message.
  GroupError(GroupErrorCode code, int rank, const std::string& message)
      : std::runtime_error(message), code_(code), rank_(rank) {}

  /// What went wrong.
  GroupErrorCode code() const noexcept { return code_; }
  /// The rank of the process that throws.
  int rank() const noexcept { return rank_; }

 private:
  GroupErrorCode code_;
  int rank_;
};

/// The processes that train together: a reference to a group of PyTorch's engine (c10d), made by
/// gloo_group() or group_from_environment(), or by any code that makes a c10d::ProcessGroup, such
/// as one over NCCL. Copies refer to the same group. A default-constructed one is a single process
/// without a group.
///
/// Every process calls the functions that take a group in the same order. Those that exchange a
/// header first (the start of a DataParallel, training, saving and loading) throw GroupError
/// (Disagree) on every process where the order differs. The others, whose messages are data alone,
/// cannot: a process whose peers make another call then waits until the group's time-out, gets
/// PeerLost, or is ended by the engine, which checks sizes by an abort. posenc never creates
/// threads or messages of its own around the engine.
class RankGroup {
 public:
  /// A single process: rank 0 of 1. Nothing is ever sent.
  RankGroup() = default;
  /// Refers to `group`.
  ///
  /// Errors: c10::ValueError for a null pointer.
  RankGroup(c10::intrusive_ptr<c10d::ProcessGroup> group);  // NOLINT: implicit by design

  /// Whether there is a c10d group (also one of a single process).
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  /// This process's rank, from 0.
  int rank() const noexcept;
  /// The number of processes.
  int size() const noexcept;

  /// Returns when all processes have called it. A program calls it last, because the first process
  /// to end is taken for lost by those that still expect a message.
  ///
  /// Errors: GroupError (PeerLost, TimedOut).
  void barrier() const;

  /// The c10d group; null for a single process.
  c10d::ProcessGroup* get() const noexcept;
  /// The c10d group's members.
  c10d::ProcessGroup* operator->() const noexcept { return get(); }

 private:
  struct Handle;
  std::shared_ptr<const Handle> handle_;
};

}  // namespace posenc
