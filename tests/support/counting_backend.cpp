#include "support/counting_backend.h"

#include <ATen/ops/cat.h>
#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "support/rank_threads.h"

namespace posenc::testing {
namespace {

using Tensors = std::vector<at::Tensor>;

std::string described(const char* name, const at::Tensor& tensor) {
  return c10::str(name, " of ", tensor.numel(), " x ", tensor.scalar_type());
}

/// Where the ranks of one group meet. After an error every call of every rank fails.
class MeetingPlace {
 public:
  explicit MeetingPlace(int size) : size_(size), inputs_(size), outputs_(size) {}

  /// Returns when all ranks have made the same call; the last to arrive computes the outputs of
  /// all.
  void meet(int rank, const std::string& call, const at::Tensor& input, const at::Tensor& output,
            void (*compute)(const Tensors& inputs, const Tensors& outputs)) {
    std::unique_lock<std::mutex> lock(mutex_);
    const int64_t round = round_;
    if (arrived_ == 0) call_ = call;
    if (call != call_) fail("the ranks call " + call_ + " and " + call);
    inputs_[static_cast<size_t>(rank)] = input;
    outputs_[static_cast<size_t>(rank)] = output;
    if (++arrived_ == size_ && error_.empty()) {
      compute(inputs_, outputs_);
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    }
    wait(lock, [&] { return round_ != round; });
  }

  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    fail("Connection closed by peer");
  }

 private:
  void fail(const std::string& error) {
    if (error_.empty()) error_ = error;
    changed_.notify_all();
  }

  void wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done) {
    const bool in_time =
        changed_.wait_for(lock, std::chrono::minutes(1), [&] { return done() || !error_.empty(); });
    if (!in_time) throw std::runtime_error("Timed out waiting for the other ranks");
    if (!done()) throw std::runtime_error(error_);
  }

  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t round_ = 0;
  int arrived_ = 0;
  std::string call_;
  std::string error_;
  Tensors inputs_;
  Tensors outputs_;
};

/// A collective that is complete when it starts.
class DoneWork : public c10d::Work {
 public:
  DoneWork() { finish(); }
};

class CountingBackend : public c10d::Backend {
 public:
  CountingBackend(std::shared_ptr<MeetingPlace> meeting, int rank, int size)
      : Backend(rank, size), meeting_(std::move(meeting)) {}
  ~CountingBackend() override { meeting_->close(); }

  const std::string getBackendName() const override { return "counting"; }

  c10::intrusive_ptr<c10d::Work> allreduce(Tensors& tensors,
                                           const c10d::AllreduceOptions& options) override {
    TORCH_CHECK(options.reduceOp == c10d::ReduceOp::SUM, "only sums are computed");
    const at::Tensor& tensor = tensors.at(0);
    count("all_reduce", tensor, 2.0 * (size_ - 1) / size_ * static_cast<double>(tensor.nbytes()));
    meeting_->meet(rank_, described("all_reduce", tensor), tensor, tensor,
                   [](const Tensors& in, const Tensors& out) {
                     const at::Tensor sum = in[0].clone();
                     for (size_t rank = 1; rank < in.size(); ++rank) sum.add_(in[rank]);
                     for (const at::Tensor& one : out) one.copy_(sum);
                   });
    return c10::make_intrusive<DoneWork>();
  }

  c10::intrusive_ptr<c10d::Work> broadcast(Tensors& tensors,
                                           const c10d::BroadcastOptions& options) override {
    const at::Tensor& tensor = tensors.at(0);
    count("broadcast", tensor,
          static_cast<double>(size_ - 1) / size_ * static_cast<double>(tensor.nbytes()));
    const std::string call =
        described("broadcast", tensor) + " from " + std::to_string(options.rootRank);
    meeting_->meet(rank_, call, rank_ == options.rootRank ? tensor : at::Tensor(), tensor,
                   [](const Tensors& in, const Tensors& out) {
                     for (const at::Tensor& root : in) {
                       for (const at::Tensor& one : out) {
                         if (root.defined()) one.copy_(root);
                       }
                     }
                   });
    return c10::make_intrusive<DoneWork>();
  }

  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& output, at::Tensor& input,
                                                 const c10d::AllgatherOptions&) override {
    count("all_gather", input,
          static_cast<double>(size_ - 1) * static_cast<double>(input.nbytes()));
    meeting_->meet(rank_, described("all_gather", input), input.view({1, -1}),
                   output.view({size_, -1}), [](const Tensors& in, const Tensors& out) {
                     for (const at::Tensor& one : out)
                       at::cat_out(const_cast<at::Tensor&>(one), in);
                   });
    return c10::make_intrusive<DoneWork>();
  }

  Traffic counts;

 private:
  void count(const char* name, const at::Tensor& tensor, double sent) {
    CollectiveCount& counted = counts[name];
    ++counted.calls;
    counted.bytes += static_cast<int64_t>(tensor.nbytes());
    counted.sent += sent;
  }

  std::shared_ptr<MeetingPlace> meeting_;
};

Traffic& counts_of(const RankGroup& group) {
  const auto backend = group->getBackend(c10::kCPU);
  auto* counting = dynamic_cast<CountingBackend*>(backend.get());
  TORCH_CHECK(counting, "the group is not of run_counted_ranks()");
  return counting->counts;
}

}  // namespace

void run_counted_ranks(int size, const std::function<void(const RankGroup& group)>& work) {
  const auto meeting = std::make_shared<MeetingPlace>(size);
  run_rank_threads(size, work, [&](int rank) -> RankGroup {
    auto group =
        c10::make_intrusive<c10d::ProcessGroup>(c10::make_intrusive<c10d::HashStore>(), rank, size);
    group->setBackend(c10::kCPU, c10d::ProcessGroup::CUSTOM,
                      c10::make_intrusive<CountingBackend>(meeting, rank, size));
    group->setDefaultBackend(c10d::ProcessGroup::CUSTOM);
    return group;
  });
}

Traffic traffic(const RankGroup& group) { return counts_of(group); }

void reset_traffic(const RankGroup& group) { counts_of(group).clear(); }

}  // namespace posenc::testing
