#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

#include "posenc/train/group.h"
#include "train/parallel/buckets.h"
#include "train/parallel/collectives.h"

namespace torch::nn {
class Module;
}

namespace posenc::parallel {

/// Sums the gradients of parameters over the processes of a group, step by step: ready() for the
/// gradients that a backward pass completes, then finish().
///
/// Whether a parameter has a dense gradient, a sparse one or none differs between processes and
/// between steps, so the last bucket's tail counts the processes of each kind, and all of them act
/// on the same counts. A parameter has a slot in a bucket until its gradient proves to be sparse,
/// or until the first exchange shows that it has none: such a slot would hold up the buckets after
/// it. A gradient without a slot is summed by itself, once, and has a slot from then on.
///
/// An error of this process alone, such as a gradient of another dtype, does not keep it from
/// taking part in the messages of the step: another number of the tail says that a process failed,
/// and finish() then throws on all of them. The next step is possible.
class GradientExchange {
 public:
  static constexpr int64_t kExtra = 64;  ///< numbers that finish() can sum in the same messages

  /// By parameter, what has been learned of its gradients.
  struct History {
    bool placed = true;  ///< it has a slot in a bucket
    bool used = false;   ///< some process has had a gradient

    /// As a number, for checkpoints.
    int number() const { return (placed ? 1 : 0) | (used ? 2 : 0); }
    static History from_number(int number) { return {(number & 1) != 0, (number & 2) != 0}; }
    static constexpr int kDefault = 3;  ///< of a dense gradient in every step
  };

  /// `parameters` and `history` are the same on all processes; those that are `placed` have dense
  /// gradients.
  GradientExchange(std::vector<at::Tensor> parameters, const std::vector<History>& history,
                   const RankGroup& group, int64_t bucket_bytes, const char* caller);

  /// An engine adds the processes' numbers in an order that depends on their offsets: an exchange
  /// that starts with this history sums as this one goes on.
  History history(std::size_t index) const { return {placed_[index], used_[index]}; }

  /// Parameter `index` has its gradient: puts it into its slot, and starts the exchange of the
  /// buckets that are complete, each only after the one before.
  void ready(std::size_t index);
  /// A paused pass has added to the gradient of parameter `index`.
  void accumulated(std::size_t index);
  /// Exchanges what is left, and waits for all. On an error of the group nothing is waited for; on
  /// one of a process alone, that process throws it and the others GroupError (PeerFailed).
  void finish(const at::Tensor& extra);
  /// Whether finish() can sum these numbers: c10::TypeError or c10::ValueError if not.
  static void check_extra(const at::Tensor& extra, const char* caller);

 private:
  enum class Kind : uint8_t { None, Dense, Sparse };

  template <typename Work>
  void guarded(const Work& work);
  template <typename Work>
  void keep_error(const Work& work);
  void start_step();
  void check_not_ready(std::size_t index) const;
  Kind collect(std::size_t index);
  void take(std::size_t index);
  void launch();
  void launch_last(const at::Tensor& extra);
  bool has_failed() const;
  void take_sums();
  at::Tensor dense_sum(std::size_t index);
  bool exists(std::size_t index, Kind kind) const;
  void update_slots();

  std::vector<at::Tensor> parameters_;
  std::vector<bool> placed_;
  std::vector<bool> used_;  // by parameter: some process has had a gradient
  RankGroup group_;
  int64_t bucket_bytes_;
  const char* caller_;
  Buckets buckets_;
  std::mutex mutex_;     // autograd has a thread for each device
  bool failed_ = false;  // the processes may be at different steps now

  // State of the current step.
  std::vector<bool> ready_;           // by parameter
  std::vector<Kind> kinds_;           // by parameter, of this process
  std::vector<std::size_t> missing_;  // by bucket: parameters that are not ready
  std::vector<Pending> pending_;      // of the buckets that are under way: the first ones
  std::exception_ptr error_;          // of this process alone, until finish() throws it
  at::Tensor counts_;                 // by kind and parameter, of processes; on the CPU
};

/// clip_grad_norm(), but returns the norm as a tensor without dimensions, and reads no value back
/// from a device. `max_norm` is positive. Messages name `caller`.
at::Tensor clip_norm(const torch::nn::Module& module, double max_norm, const char* caller);

}  // namespace posenc::parallel
