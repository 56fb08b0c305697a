// A group of processes with one GPU each, as docs/developers/distributed.md shows it. Compiled
// where LibTorch is a CUDA build and NCCL's and CUDA's headers are found; not run by any test.
#include <posenc/train/gloo.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

posenc::RankGroup nccl_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size) {
  const posenc::RankGroup cpu = posenc::gloo_group(store, rank, size);
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, size);
  auto own_keys = c10::make_intrusive<c10d::PrefixStore>("nccl", store);
  group->setBackend(c10::kCUDA, c10d::ProcessGroup::NCCL,
                    c10::make_intrusive<c10d::ProcessGroupNCCL>(own_keys, rank, size));
  group->setBackend(c10::kCPU, c10d::ProcessGroup::GLOO, cpu->getBackend(c10::kCPU));
  group->setDefaultBackend(c10d::ProcessGroup::NCCL);
  return group;
}
