#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/train/group.h"

namespace posenc::parallel {

// The collectives that posenc uses of c10d's engine. Only collectives.cpp calls c10d::ProcessGroup,
// some of whose names changed in LibTorch 2.13. The engine's exceptions are converted
// to GroupError, whose message names `caller`, a string literal; an error of this process alone,
// such as a dtype that the engine cannot sum, keeps its type. For a single process each function is
// a no-op or a copy. Tensors are contiguous; all processes pass the same sizes and dtypes, which
// agree_on() has to ensure first: the engine aborts the process where they differ.

/// A collective under way. An error of it is thrown by wait(), which has to be called; if other
/// collectives failed first the group is lost anyway, and the object may be dropped.
class [[nodiscard]] Pending {
 public:
  Pending() = default;  ///< done already
  explicit Pending(std::function<void()> wait) : wait_(std::move(wait)) {}
  Pending(Pending&&) = default;
  Pending& operator=(Pending&&) = default;
  ~Pending() = default;
  void wait();

 private:
  std::function<void()> wait_;
};

/// While it is alive, this thread does what the other processes do not: a collective of `group`
/// throws c10::ValueError at once, where it would wait for them.
class RankAlone {
 public:
  explicit RankAlone(const RankGroup& group);
  ~RankAlone();
  RankAlone(const RankAlone&) = delete;
  RankAlone& operator=(const RankAlone&) = delete;

 private:
  const void* outer_;
};

/// Starts the sum over all processes, in place. `tensor` is kept alive until wait().
Pending start_all_reduce(const RankGroup& group, const at::Tensor& tensor, const char* caller);
/// The sum over all processes, in place.
void all_reduce(const RankGroup& group, const at::Tensor& tensor, const char* caller);
/// The tensors of all processes, (size, *tensor.sizes()), in the order of their ranks.
at::Tensor all_gather(const RankGroup& group, const at::Tensor& tensor, const char* caller);
/// Tensors of different lengths along dimension 0, concatenated in the order of their ranks; the
/// other dimensions must be equal. `lengths` are those of all processes. The shorter ones are
/// padded on the wire.
at::Tensor all_gather_rows(const RankGroup& group, const at::Tensor& tensor,
                           const std::vector<int64_t>& lengths, const char* caller);
/// The numbers of all processes, in the order of their ranks. Like agree_on() and all_or_none(),
/// throws GroupError(Disagree) on every process if another one is in another of these three or was
/// called by another `caller`.
std::vector<int64_t> all_gather_numbers(const RankGroup& group, int64_t number, const char* caller);
/// Copies `tensor` of `root` to all processes, in place.
void broadcast(const RankGroup& group, const at::Tensor& tensor, int root, const char* caller);
/// Returns when all processes have called it.
void barrier(const RankGroup& group, const char* caller);

/// A hash of the text that is the same in every build.
int64_t fingerprint(const std::string& text);
/// Throws GroupError(Disagree) on every process unless all pass the same text; the message shows
/// the first line in which this process's text differs from rank 0's, or else another process's.
void agree_on(const RankGroup& group, const std::string& text, const char* caller);
/// Runs `work`, which does not communicate, on this process (or on none: null), and throws on every
/// process if it threw on any: its own exception there, GroupError(PeerFailed), with the message
/// and the rank, elsewhere. A collective.
void all_or_none(const RankGroup& group, const std::function<void()>& work, const char* caller);

}  // namespace posenc::parallel
