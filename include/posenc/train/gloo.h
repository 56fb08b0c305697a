#pragma once

#include <torch/arg.h>

#include <chrono>
#include <string>

#include "posenc/export.h"
#include "posenc/train/group.h"

/// @file
/// Groups of processes over Gloo, PyTorch's engine for CPUs. They are in a library of their own,
/// `posenc::gloo`, which is built where Gloo's headers are installed (Debian: libgloo-dev).

namespace c10d {
class Store;
}

namespace posenc POSENC_EXPORT {

/// Options of gloo_group() and group_from_environment().
struct GroupOptions {
  /// How long a collective, and the meeting of the processes as a whole, may take. It must exceed
  /// the longest pause of any process, such as the writing of a checkpoint. A process that dies is
  /// noticed at once; this limit is for one that hangs and for a host that loses power.
  TORCH_ARG(std::chrono::milliseconds, timeout) = std::chrono::minutes(5);
  /// The address of this host, or the name of its network interface, or several of either with
  /// commas between them, at which the other processes reach it. Empty: for gloo_group() 127.0.0.1,
  /// which is for processes on one host; for group_from_environment() the interface in
  /// `GLOO_SOCKET_IFNAME`, PyTorch's variable, or else the address from which this host reaches
  /// `MASTER_ADDR`.
  TORCH_ARG(std::string, address) = "";
};

/// Makes a group of `size` processes that meet in `store`, for example a c10d::FileStore on one
/// host or a c10d::TCPStore. If SIGPIPE still has its default action, the process ignores it from
/// now on, as Python does: a lost peer would otherwise end this process instead of being an error.
///
/// A store serves one group: give each further group a c10d::PrefixStore of its own.
///
/// Errors: c10::ValueError for a rank outside [0, size), a time-out that is not positive and an
/// address that is not this host's; GroupError (Rendezvous) if the others do not come within the
/// time-out.
RankGroup gloo_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                     const GroupOptions& options = {});

/// Makes the group that the launcher of this process describes in the environment:
///
/// - torchrun, or a shell: `RANK`, `WORLD_SIZE`
/// - Open MPI's mpirun: `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE`
/// - MPICH's and Intel's mpirun: `PMI_RANK`, `PMI_SIZE`
/// - srun: `SLURM_PROCID`, `SLURM_NTASKS`
///
/// and `MASTER_ADDR`, `MASTER_PORT`, which srun and mpirun have to be given. torchrun's agent
/// serves the store; otherwise rank 0 does. If several launchers' variables are set, those nearest
/// the top count. A process that no launcher started, with none of these variables, is a single
/// process: an empty RankGroup; so is one whose size is 1, which needs no address.
///
/// Errors: c10::ValueError for variables that are missing, are no numbers or contradict each other
/// (naming the variable); GroupError (Rendezvous) if the processes do not meet in time.
RankGroup group_from_environment(const GroupOptions& options = {});

}  // namespace posenc
