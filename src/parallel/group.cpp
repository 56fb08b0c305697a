#include "posenc/parallel/group.h"

#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <utility>

namespace posenc {

struct RankGroup::Handle {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
};

RankGroup::RankGroup(c10::intrusive_ptr<c10d::ProcessGroup> group) {
  TORCH_CHECK_VALUE(group, "[RankGroup] a process group is required");
  handle_ = std::make_shared<const Handle>(Handle{std::move(group)});
}

int RankGroup::rank() const noexcept { return handle_ ? handle_->group->getRank() : 0; }

int RankGroup::size() const noexcept { return handle_ ? handle_->group->getSize() : 1; }

c10d::ProcessGroup* RankGroup::get() const noexcept {
  return handle_ ? handle_->group.get() : nullptr;
}

}  // namespace posenc
