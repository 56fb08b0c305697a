#include "posenc/train/group.h"

#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <algorithm>
#include <utility>

#include "train/parallel/collectives.h"

namespace posenc {

struct RankGroup::Handle {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
};

RankGroup::RankGroup(c10::intrusive_ptr<c10d::ProcessGroup> group) {
  TORCH_CHECK_VALUE(group, "[RankGroup] a process group is required");
  const std::vector<c10::Device> devices = group->getDeviceTypes();
  TORCH_CHECK_VALUE(
      std::any_of(devices.begin(), devices.end(),
                  [](c10::Device device) { return device.is_cpu(); }),
      "[RankGroup] the process group must have a backend for CPU tensors, which carries counts and "
      "messages; set Gloo's beside NCCL's by setBackend(c10::kCPU, ...)");
  handle_ = std::make_shared<const Handle>(Handle{std::move(group)});
}

int RankGroup::rank() const noexcept { return handle_ ? handle_->group->getRank() : 0; }

int RankGroup::size() const noexcept { return handle_ ? handle_->group->getSize() : 1; }

void RankGroup::barrier() const { parallel::barrier(*this, "RankGroup::barrier"); }

c10d::ProcessGroup* RankGroup::get() const noexcept {
  return handle_ ? handle_->group.get() : nullptr;
}

}  // namespace posenc
