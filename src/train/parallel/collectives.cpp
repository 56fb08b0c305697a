#include "train/parallel/collectives.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/view_as_real.h>
#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <algorithm>
#include <exception>
#include <utility>

#include "core/torch_internals/torch_version.h"
#include "train/parallel/group_text.h"

namespace posenc::parallel {
namespace {

using EngineWork = c10::intrusive_ptr<c10d::Work>;

/// Throws `error` of the engine as GroupError. Its types say little (Gloo's derive from
/// std::runtime_error and need Gloo's headers), so a time-out is known by its text.
[[noreturn]] void throw_group_error(const RankGroup& group, const char* caller,
                                    const std::exception& error) {
  const std::string text = text_of(error);
  const bool timed_out =
      text.find("imed out") != std::string::npos || text.find("imeout") != std::string::npos;
  throw GroupError(
      timed_out ? GroupErrorCode::TimedOut : GroupErrorCode::PeerLost, group.rank(),
      c10::str(rank_prefix(caller, group.rank(), group.size()),
               timed_out ? "another process did not take part within the group's time-out"
                         : "the group lost a process",
               "; start all processes again. Got: ", text));
}

/// The group of RankAlone.
thread_local const void* group_of_one = nullptr;

/// Starts a collective on `tensor`, which the result keeps alive.
template <typename Launch>
Pending start(const RankGroup& group, const at::Tensor& tensor, const char* caller,
              const Launch& launch) {
  TORCH_CHECK_VALUE(group_of_one == nullptr || group_of_one != group.get(), "[", caller,
                    "] all processes of a group must call it, and `report` is called on rank 0 "
                    "only. Got a call in `report`; make it between calls of train()");
  EngineWork work;
  try {
    work = launch(*group.get());
  } catch (const c10::DistError& error) {
    throw_group_error(group, caller, error);
  } catch (const c10::Error&) {
    throw;  // this process's arguments are wrong
  } catch (const std::exception& error) {
    throw_group_error(group, caller, error);
  }
  return Pending([group, tensor, caller, work = std::move(work)] {
    try {
      TORCH_CHECK(work->wait(), "the collective was aborted");
    } catch (const std::exception& error) {
      throw_group_error(group, caller, error);
    }
  });
}

/// All elements of a tensor as one row, which shares its memory.
at::Tensor flat(const at::Tensor& tensor) {
  TORCH_INTERNAL_ASSERT(tensor.is_contiguous(), "collectives take contiguous tensors");
  // A tensor of one element may have any stride and still count as contiguous.
  return tensor.detach().as_strided({tensor.numel()}, {1});
}

/// The same as bytes, for collectives that only copy: these then take every dtype.
at::Tensor bytes(const at::Tensor& tensor) { return flat(tensor).view(at::kByte); }

/// Whether both Gloo and NCCL sum this type.
bool is_summed(at::ScalarType dtype) {
  switch (dtype) {
    case at::kByte:
    case at::kChar:
    case at::kInt:
    case at::kLong:
    case at::kHalf:
    case at::kBFloat16:
    case at::kFloat:
    case at::kDouble: return true;
    default: return false;
  }
}

bool nothing_to_do(const RankGroup& group, const at::Tensor& tensor) {
  return group.size() == 1 || tensor.numel() == 0;
}

}  // namespace

RankAlone::RankAlone(const RankGroup& group)
    : outer_(std::exchange(group_of_one, group.size() > 1 ? group.get() : nullptr)) {}

RankAlone::~RankAlone() { group_of_one = outer_; }

void Pending::wait() {
  if (auto wait = std::exchange(wait_, nullptr)) wait();
}

Pending start_all_reduce(const RankGroup& group, const at::Tensor& tensor, const char* caller) {
  const at::Tensor real = tensor.is_complex() ? at::view_as_real(tensor) : tensor;
  TORCH_CHECK_TYPE(is_summed(real.scalar_type()), "[", caller,
                   "] tensors that are summed over "
                   "processes must be floating-point of 16 bits or more, or integers. Got ",
                   tensor.scalar_type());
  if (nothing_to_do(group, tensor)) return {};
  std::vector<at::Tensor> tensors{flat(real)};
  return start(group, tensor, caller,
               [&](c10d::ProcessGroup& engine) { return engine.allreduce(tensors); });
}

void all_reduce(const RankGroup& group, const at::Tensor& tensor, const char* caller) {
  start_all_reduce(group, tensor, caller).wait();
}

at::Tensor all_gather(const RankGroup& group, const at::Tensor& tensor, const char* caller) {
  std::vector<int64_t> sizes = tensor.sizes().vec();
  sizes.insert(sizes.begin(), group.size());
  if (group.size() == 1) return tensor.detach().clone().view(sizes);
  at::Tensor gathered = at::empty(sizes, tensor.options().requires_grad(false));
  if (tensor.numel() == 0) return gathered;
  at::Tensor out = bytes(gathered);
  at::Tensor in = bytes(tensor);
  start(group, in, caller, [&](c10d::ProcessGroup& engine) {
#if POSENC_TORCH_AT_LEAST(2, 13)
    return engine.all_gather_single(out, in);
#else
    return engine._allgather_base(out, in);
#endif
  }).wait();
  return gathered;
}

at::Tensor all_gather_rows(const RankGroup& group, const at::Tensor& tensor,
                           const std::vector<int64_t>& lengths, const char* caller) {
  TORCH_INTERNAL_ASSERT(static_cast<int>(lengths.size()) == group.size());
  TORCH_INTERNAL_ASSERT(tensor.size(0) == lengths[group.rank()]);
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  at::Tensor padded = tensor.detach();
  if (tensor.size(0) < longest) {
    std::vector<int64_t> sizes = tensor.sizes().vec();
    sizes.front() = longest;
    padded = tensor.new_zeros(sizes, tensor.options().requires_grad(false));
    padded.narrow(0, 0, tensor.size(0)).copy_(tensor.detach());
  }
  const at::Tensor gathered = all_gather(group, padded, caller);
  if (std::all_of(lengths.begin(), lengths.end(), [&](int64_t n) { return n == longest; })) {
    return gathered.flatten(0, 1);
  }
  std::vector<at::Tensor> rows;
  for (size_t rank = 0; rank < lengths.size(); ++rank) {
    rows.push_back(gathered.select(0, static_cast<int64_t>(rank)).narrow(0, 0, lengths[rank]));
  }
  return at::cat(rows);
}

void broadcast(const RankGroup& group, const at::Tensor& tensor, int root, const char* caller) {
  if (nothing_to_do(group, tensor)) return;
  std::vector<at::Tensor> tensors{bytes(tensor)};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  start(group, tensor, caller, [&](c10d::ProcessGroup& engine) {
    return engine.broadcast(tensors, options);
  }).wait();
}

// Not the engine's own barrier, for which NCCL wants a device: nobody gets a sum before all have
// contributed.
void barrier(const RankGroup& group, const char* caller) {
  all_reduce(group, at::ones({1}, at::kLong), caller);
}

}  // namespace posenc::parallel
