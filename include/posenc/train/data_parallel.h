#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "posenc/core/module_ref.h"
#include "posenc/export.h"
#include "posenc/train/group.h"

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
  DataParallelPause(DataParallelPause&& other) noexcept;  ///< moves the pause
  DataParallelPause& operator=(DataParallelPause&& other) =
      delete;  ///< a pause ends where it began
  ~DataParallelPause();

 private:
  friend class DataParallel;
  explicit DataParallelPause(std::shared_ptr<int> paused);
  std::shared_ptr<int> paused_;
};

/// Sums the gradients of a module over the processes of a group: every process calls backward() on
/// its own share of the batch, then finish(); each `.grad` is then the sum over all of them, the
/// same bits on every process. For the gradient of the whole batch's mean, each process multiplies
/// its loss by its share of the targets (Trainer does); means of means would be wrong.
///
/// ```cpp
/// posenc::DataParallel parallel(*model, group);
/// (loss_of(my_share) * (my_targets / all_targets)).backward();
/// parallel.finish();
/// optimizer.step();
/// optimizer.zero_grad();
/// ```
///
/// Construction agrees on the model (names, shapes, dtypes, strides, requires_grad and posenc's
/// version) and copies rank 0's parameters and buffers to all processes. Gradients are exchanged in
/// flat buckets in a fixed order while backward() still runs. After finish(), a dense `.grad` is an
/// alias of its place in a bucket, which the next backward pass reuses; zero_grad() may drop it or
/// clear it. What `.grad` holds is summed as it is, so it must be cleared between steps.
///
/// A parameter without a gradient on some process counts as zeros there, and one without a gradient
/// on any process keeps none. Sparse COO gradients are exchanged as ids and rows in finish(), and
/// are coalesced after it. A parameter that is unfrozen later is exchanged from then on.
///
/// Keeps references to the module and to its parameters, of which each has a single place for a
/// post-accumulate hook. The hooks are removed by the destructor, which waits for nothing. A single
/// process, with or without a group, exchanges nothing and has no hooks.
///
/// Errors: c10::ValueError for a parameter that has a post-accumulate hook, a parameter that is not
/// dense or has no data, a bucket_bytes that is not positive, and a second backward() before
/// finish() without pause(), or with create_graph; c10::TypeError for a gradient that is neither
/// dense nor sparse COO or has another shape, dtype or device than its parameter had at
/// construction. Such an error of one process alone makes finish() throw on all of them: the same
/// error on that process, GroupError (PeerFailed) on the others; gradients hold no sums then, and
/// the next step is possible. GroupError (Disagree) on every process if the models differ;
/// GroupError from finish() and backward() if a process is lost, after which nothing waits for the
/// others.
///
/// Source: torch.nn.parallel.DistributedDataParallel; Li et al. 2020, "PyTorch Distributed".
class DataParallel {
 public:
  /// Prepares `module`. All processes of the group call this.
  DataParallel(const ModuleRef& module, RankGroup group, const DataParallelOptions& options = {});
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;             ///< hooks refer to this object
  DataParallel& operator=(const DataParallel&) = delete;  ///< hooks refer to this object

  /// Completes the exchange after backward(): every gradient is then the sum over the processes.
  /// A process whose share is empty, or whose backward() threw, may call it as well: what its
  /// gradients hold is added.
  ///
  /// `extra`, up to 64 float32 numbers, is summed over the processes in place, in the messages that
  /// are sent anyway: for losses, counts and flags. All processes pass the same number of them.
  ///
  /// Errors: those of the class; c10::TypeError for numbers that are not contiguous float32,
  /// c10::ValueError for more than 64.
  void finish(const at::Tensor& extra = {});

  /// Suspends the exchange for backward passes whose gradients accumulate:
  ///
  /// ```cpp
  /// posenc::DataParallel parallel(*model, group);
  /// for (size_t i = 0; i < parts.size(); ++i) {
  ///   std::optional<posenc::DataParallelPause> pause;
  ///   if (i + 1 < parts.size()) pause.emplace(parallel.pause());
  ///   loss_of(parts[i]).backward();
  /// }
  /// parallel.finish();
  /// ```
  [[nodiscard]] DataParallelPause pause();

  /// Copies rank 0's buffers to all processes, for modules whose buffers change in training. Tables
  /// that the modules compute are left as they are.
  ///
  /// Errors: GroupError (Disagree) on every process if the buffers' names, shapes or dtypes differ.
  void broadcast_buffers();

  /// The group.
  const RankGroup& group() const noexcept;

 private:
  friend class Trainer;
  class Impl;
  /// By the parameter's name, what an exchange has learned of its gradients. Trainer keeps it from
  /// one train() to the next, and in checkpoints.
  using Histories = std::map<std::string, int>;
  DataParallel(const ModuleRef& module, RankGroup group, const Histories& histories);
  Histories histories() const;
  bool buffers_have_changed();
  std::unique_ptr<Impl> impl_;
};

}  // namespace posenc
