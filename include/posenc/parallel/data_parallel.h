#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <memory>

#include "posenc/core/module_ref.h"
#include "posenc/export.h"
#include "posenc/parallel/group.h"

namespace posenc POSENC_EXPORT {

/// Options of DataParallel.
struct DataParallelOptions {
  /// Gradients are exchanged in buckets of about this many bytes, each as soon as its gradients are
  /// complete.
  TORCH_ARG(int64_t, bucket_bytes) = 25 << 20;
};

/// Stops the exchange of gradients while it is alive: for all micro-batches but the last.
class DataParallelPause {
 public:
  DataParallelPause(DataParallelPause&& other) noexcept;             ///< moves the pause
  DataParallelPause& operator=(DataParallelPause&& other) = delete;  ///< a pause ends where it began
  ~DataParallelPause();

 private:
  friend class DataParallel;
  explicit DataParallelPause(int* paused);
  int* paused_;
};

/// Sums the gradients of a module over the processes of a group: every process calls backward() on
/// its own share of the batch, then finish(); each `.grad` is then the sum over all of them, the
/// same bits on every process. For the gradient of the whole batch's mean, each process multiplies
/// its loss by its share of the targets (Trainer does); means of means would be wrong.
///
///     posenc::DataParallel parallel(*model, group);
///     (loss_of(my_share) * (my_targets / all_targets)).backward();
///     parallel.finish();
///     optimizer.step();
///
/// Construction agrees on the model (names, shapes, dtypes, requires_grad and posenc's version) and
/// copies rank 0's parameters and buffers to all processes. Gradients are exchanged in flat buckets
/// in a fixed order while backward() still runs. After finish(), a dense `.grad` is an alias of its
/// place in a bucket, which the next backward pass reuses; zero_grad() may drop it or clear it.
/// Parameters without a gradient on some process count as zeros there, and those without one on any
/// process keep none. Sparse gradients are exchanged as ids and rows in finish(). Rows of parameters
/// that are shards of the group (StateDictTraits::sharded_names) are not exchanged.
///
/// Keeps a reference to the module. The hooks are removed by the destructor.
///
/// Errors: c10::ValueError for a module that has post-accumulate hooks already, and for options out
/// of range; GroupError (Disagree) on every process if the models differ; GroupError from
/// finish() and backward() if a peer is lost or a process reports an error.
///
/// Source: torch.nn.parallel.DistributedDataParallel; Li et al. 2020, "PyTorch Distributed".
class DataParallel {
 public:
  /// Prepares `module`. A single process without a group is allowed: nothing is exchanged.
  DataParallel(const ModuleRef& module, RankGroup group, const DataParallelOptions& options = {});
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;             ///< hooks refer to this object
  DataParallel& operator=(const DataParallel&) = delete;  ///< hooks refer to this object

  /// Completes the exchange after backward(): every gradient is then the sum over the processes.
  void finish();

  /// Suspends the exchange for backward passes whose gradients accumulate.
  [[nodiscard]] DataParallelPause pause();

  /// Copies rank 0's buffers to all processes, for modules whose buffers change in training.
  void broadcast_buffers();

  /// The group.
  const RankGroup& group() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace posenc
